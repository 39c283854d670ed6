//! ncmesh on the wire: identifiers, the outer frame, a checked cursor, sealing.
