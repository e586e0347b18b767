//! Tells the compiler that `--cfg loom` (model tests of the executor) is no typing error.
fn main() {
    println!("cargo::rustc-check-cfg=cfg(loom)");
    println!("cargo::rerun-if-changed=build.rs");
}
