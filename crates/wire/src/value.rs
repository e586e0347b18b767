//! Values on the wire: a tag byte and as few bytes as are needed. Strings are checked for UTF-8, dates and times for their ranges;
//! whether a value fits its column is for who knows the column ([`rauk_types::check`]).

use crate::WireError;
use crate::read::Reader;
use rauk_types::ValueRef;

pub fn put(_value: ValueRef<'_>, _out: &mut Vec<u8>) {
    todo!()
}

pub fn get<'a>(_reader: &mut Reader<'a>) -> Result<ValueRef<'a>, WireError> {
    todo!()
}
