//! Prints the medians of the run as Markdown tables.

use crate::ceiling::PRODUCTS;
use crate::{GENERATIONS, SYMBOL_SIZES};
use std::path::PathBuf;

const OPERATIONS: [&str; 8] = [
    "encode-1",
    "encode-4",
    "encode-16",
    "recode-1",
    "recode-4",
    "recode-16",
    "decode-dense",
    "decode-systematic",
];

/// Returns the median time of one packet, or of one generation in decoding, in ns.
fn median(k: usize, size: usize, operation: &str, who: &str) -> Option<f64> {
    let each = operation.split_once('-').and_then(|(_, n)| n.parse::<f64>().ok()).unwrap_or(1.0);
    // Criterion replaces the slash of a benchmark's name by an underscore in its folder.
    time(&format!("{k}x{size}/{operation}_{who}")).map(|ns| ns / each)
}

/// Returns Criterion's median of the benchmark in folder `id`, in ns.
fn time(id: &str) -> Option<f64> {
    let root = std::env::var_os("CARGO_TARGET_DIR").map_or_else(target, PathBuf::from);
    let text =
        std::fs::read_to_string(root.join("criterion").join(id).join("new/estimates.json")).ok()?;
    let estimates: serde_json::Value = serde_json::from_str(&text).ok()?;
    estimates["median"]["point_estimate"].as_f64()
}

fn target() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target"))
}

/// Prints a table for each operation. Missing measurements are blank.
pub fn print() {
    for operation in OPERATIONS {
        println!("\n### {operation} (median ns)\n");
        print!("| k x size | ncmesh | rlnc 0.8.5 | ratio | rlnc 0.8.7 | ratio ");
        println!("| ISA-L | ratio | of ceiling |");
        println!("|---|---|---|---|---|---|---|---|---|");
        for (k, size) in GENERATIONS.into_iter().flat_map(|k| SYMBOL_SIZES.map(|size| (k, size))) {
            print_row(k, size, operation);
        }
    }
}

fn print_row(k: usize, size: usize, operation: &str) {
    let Some(ours) = median(k, size, operation, "ncmesh") else {
        return;
    };
    print!("| {k} x {size} | {ours:.0} ");
    // `rlnc` makes one packet in a call, so its time of one packet is compared.
    let single =
        operation.split_once('-').map_or(operation, |(kind, n)| match n.parse::<usize>() {
            Ok(_) if kind == "encode" => "encode-1",
            Ok(_) => "recode-1",
            Err(_) => operation,
        });
    for (who, operation) in [("rlnc 0.8.5", single), ("rlnc 0.8.7", single), ("isa-l", operation)] {
        match median(k, size, operation, who) {
            Some(theirs) => print!("| {theirs:.0} | {:.2} ", theirs / ours),
            None => print!("| | "),
        }
    }
    // The ceiling bounds the product alone, without the drawing of coefficients.
    let product = median(k, size, operation, "ncmesh, given coefficients").unwrap_or(ours);
    let bytes = if operation == "decode-dense" { k * k * size } else { k * size };
    let ceiling = time(&format!("{k}x{size}/ceiling")).map(|ns| (PRODUCTS * 64) as f64 / ns);
    match ceiling.filter(|_| operation != "decode-systematic") {
        Some(ceiling) => println!("| {:.0} % |", bytes as f64 / ceiling / product * 100.0),
        None => println!("| |"),
    }
}
