//! Named fault points: places where a test can make the process crash, an operation fail or a pause happen.
//! Off, one costs a relaxed load of one atomic.
