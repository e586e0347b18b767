//! Which partition a bucket is in on a node that is alone. In a cluster the layout says that. The bucket of a key is
//! found by [`rauk_types::route`], which clients use too.

use rauk_types::layout::{EVERYWHERE, share};
pub use rauk_types::route::Route;
use rauk_types::schema::BUCKETS;

/// The partition of a bucket on a node that is alone: rows of fully replicated tables are with the first.
#[inline]
pub fn partition_of(bucket: u16, partitions: u16) -> u16 {
    if bucket == EVERYWHERE { 0 } else { share(bucket, BUCKETS, partitions) }
}
