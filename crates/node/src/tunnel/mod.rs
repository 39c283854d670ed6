//! The TUN device, the one part of a tunnel that is not pure. The gateway behind it is
//! [`ncmesh_host::gateway`].

pub mod device;
