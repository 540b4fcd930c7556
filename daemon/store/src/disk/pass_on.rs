//! The one way in which a disk over another passes calls on.

/// Defines methods of [`Disk`](crate::disk::Disk) or [`DiskFile`](crate::disk::DiskFile), within an `impl` of it, that
/// only call the same method of a field.
///
/// ```ignore
/// impl Disk for Metered {
///     pass_on!(inner: create_dir list sync_dir space mount_generation);
///     // … what this layer does itself
/// }
/// ```
#[macro_export]
macro_rules! pass_on {
    ($inner:ident: $($method:ident)+) => { $($crate::pass_on!(@ $inner $method);)+ };
    (@ $inner:ident create_dir) => {
        fn create_dir(&self, dir: &str) -> ::std::io::Result<()> { self.$inner.create_dir(dir) }
    };
    (@ $inner:ident list) => {
        fn list(&self, dir: &str) -> ::std::io::Result<::std::vec::Vec<::std::string::String>> {
            self.$inner.list(dir)
        }
    };
    (@ $inner:ident open) => {
        fn open(
            &self,
            path: &str,
            mode: $crate::disk::Mode,
        ) -> ::std::io::Result<::std::sync::Arc<dyn $crate::disk::DiskFile>> {
            self.$inner.open(path, mode)
        }
    };
    (@ $inner:ident rename) => {
        fn rename(&self, from: &str, to: &str) -> ::std::io::Result<()> { self.$inner.rename(from, to) }
    };
    (@ $inner:ident remove) => {
        fn remove(&self, path: &str) -> ::std::io::Result<()> { self.$inner.remove(path) }
    };
    (@ $inner:ident sync_dir) => {
        fn sync_dir(&self, dir: &str) -> ::std::io::Result<()> { self.$inner.sync_dir(dir) }
    };
    (@ $inner:ident space) => {
        fn space(&self) -> ::std::io::Result<$crate::disk::Space> { self.$inner.space() }
    };
    (@ $inner:ident mount_generation) => {
        fn mount_generation(&self) -> ::std::io::Result<u64> { self.$inner.mount_generation() }
    };
    (@ $inner:ident len) => {
        fn len(&self) -> ::std::io::Result<u64> { self.$inner.len() }
    };
    (@ $inner:ident read_at) => {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> ::std::io::Result<()> {
            self.$inner.read_at(buf, offset)
        }
    };
    (@ $inner:ident write_at) => {
        fn write_at(&self, buf: &[u8], offset: u64) -> ::std::io::Result<()> {
            self.$inner.write_at(buf, offset)
        }
    };
    (@ $inner:ident sync) => {
        fn sync(&self) -> ::std::io::Result<()> { self.$inner.sync() }
    };
    (@ $inner:ident truncate) => {
        fn truncate(&self, len: u64) -> ::std::io::Result<()> { self.$inner.truncate(len) }
    };
    (@ $inner:ident has_name) => {
        fn has_name(&self) -> ::std::io::Result<bool> { self.$inner.has_name() }
    };
    (@ $inner:ident allocate) => {
        fn allocate(&self, len: u64) -> ::std::io::Result<()> { self.$inner.allocate(len) }
    };
}
