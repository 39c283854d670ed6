//! Checks of the settings that every file scheme has.

/// Checks the size of batches and of packets.
///
/// # Errors
/// One line that names the setting and says what is allowed.
pub(crate) fn check_packets(batch_size: u8, symbol_size: Option<u16>) -> Result<(), String> {
    if batch_size == 0 {
        return Err("batch_size = 0: allowed is 1 to 255 packets".into());
    }
    if symbol_size.is_some_and(|size| size < 64) {
        return Err("symbol_size: allowed is 64 to 65535 bytes".into());
    }
    Ok(())
}
