//! The packets with which a connection begins: greeting, the client's answer, COM_CHANGE_USER, auth switch.
//!
//! Pure encoding and decoding; the order of things is in [`crate::connection`].
use crate::auth::{self, NONCE};
use crate::constants::{COLLATION_DEFAULT, capability, status};
use crate::packet::read::{Fields, Malformed};
use crate::packet::write;

/// Longest packet that a client may send before it is known: connection attributes may take 64 KiB.
pub const MAX_PACKET: usize = 128 * 1024;
/// Most connection attributes that are kept.
const MAX_ATTRIBUTES: usize = 128;

/// Appends the payload of a protocol 10 greeting.
pub fn write_greeting(version: &str, connection_id: u32, nonce: &[u8; NONCE], offered: u32, out: &mut Vec<u8>) {
    out.push(10);
    write::nul_str(version, out);
    out.extend_from_slice(&connection_id.to_le_bytes());
    out.extend_from_slice(&nonce[..8]);
    out.push(0);
    out.extend_from_slice(&(offered as u16).to_le_bytes());
    // One byte only: numbers above 255 do not fit and clients know that.
    out.push(COLLATION_DEFAULT as u8);
    out.extend_from_slice(&status::AUTOCOMMIT.to_le_bytes());
    out.extend_from_slice(&((offered >> 16) as u16).to_le_bytes());
    out.push(NONCE as u8 + 1);
    out.extend_from_slice(&[0; 10]);
    out.extend_from_slice(&nonce[8..]);
    out.push(0);
    write::nul_str(auth::CACHING_SHA2, out);
}

/// What a client answers to the greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub capabilities: u32,
    pub collation: u16,
    pub login: Login,
}

/// Who wants in, from a handshake response or COM_CHANGE_USER.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub response: Vec<u8>,
    pub database: Option<String>,
    /// Empty: the client does not say.
    pub plugin: String,
    pub attributes: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstPacket {
    /// The client wants TLS before it says more; its capabilities.
    Tls(u32),
    Response(Response),
}

/// Decodes the first packet of a client. `offered` are the server's capabilities: others that the client sets are ignored.
pub fn read_first(payload: &[u8], offered: u32, over_tls: bool) -> Result<FirstPacket, Malformed> {
    let mut fields = Fields::new(payload);
    let capabilities = fields.u32()? & offered;
    if capabilities & capability::PROTOCOL_41 == 0 {
        return Err(Malformed("the client does not speak protocol 4.1"));
    }
    let _max_packet = fields.u32()?;
    let mut collation = u16::from(fields.u8()?);
    let filler = fields.take(23)?;
    if capabilities & capability::SSL != 0 && !over_tls {
        return if fields.is_empty() {
            Ok(FirstPacket::Tls(capabilities))
        } else {
            Err(Malformed("a TLS request with more behind it"))
        };
    }
    if collation == 0 {
        // Clients with collation numbers above 255 send zero or only the low byte.
        collation = COLLATION_DEFAULT;
    }
    let _ = filler;
    let user = text(fields.nul_bytes());
    let response = if capabilities & capability::PLUGIN_AUTH_LENENC_CLIENT_DATA != 0 {
        fields.lenenc_bytes()?
    } else if capabilities & capability::SECURE_CONNECTION != 0 {
        let n = fields.u8()?;
        fields.take(n.into())?
    } else {
        fields.nul_bytes()
    }
    .to_vec();
    let mut login = Login { user, response, ..Login::default() };
    if capabilities & capability::CONNECT_WITH_DB != 0 {
        login.database = database(fields.nul_bytes());
    }
    if capabilities & capability::PLUGIN_AUTH != 0 {
        login.plugin = text(fields.nul_bytes());
    } else {
        // Clients from before plugins know one way.
        login.plugin = auth::NATIVE.into();
    }
    if capabilities & capability::CONNECT_ATTRS != 0 {
        login.attributes = attributes(&mut fields)?;
    }
    Ok(FirstPacket::Response(Response { capabilities, collation, login }))
}

/// Decodes COM_CHANGE_USER (without the command byte): who, and the collation if one is named.
pub fn read_change_user(payload: &[u8], capabilities: u32) -> Result<(Login, Option<u16>), Malformed> {
    let mut fields = Fields::new(payload);
    let user = text(fields.nul_bytes());
    let n = fields.u8()?;
    let response = fields.take(n.into())?.to_vec();
    let mut login = Login { user, response, ..Login::default() };
    login.database = database(fields.nul_bytes());
    let mut collation = None;
    if !fields.is_empty() {
        collation = Some(fields.u16()?).filter(|c| *c != 0);
        if capabilities & capability::PLUGIN_AUTH != 0 {
            login.plugin = text(fields.nul_bytes());
        }
        if capabilities & capability::CONNECT_ATTRS != 0 {
            login.attributes = attributes(&mut fields)?;
        }
    }
    Ok((login, collation))
}

fn attributes(fields: &mut Fields<'_>) -> Result<Vec<(String, String)>, Malformed> {
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let mut fields = Fields::new(fields.lenenc_bytes()?);
    let mut out = Vec::new();
    while !fields.is_empty() && out.len() < MAX_ATTRIBUTES {
        out.push((text(fields.lenenc_bytes()?), text(fields.lenenc_bytes()?)));
    }
    Ok(out)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn database(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| text(bytes))
}

/// Appends the payload that asks a client for another plugin's proof.
pub fn write_auth_switch(plugin: &str, nonce: &[u8; NONCE], out: &mut Vec<u8>) {
    out.push(0xFE);
    write::nul_str(plugin, out);
    out.extend_from_slice(nonce);
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What libmariadb 3.3 sends for `mariadb -uroot -psecret test` (captured; attributes shortened by hand).
    fn captured() -> Vec<u8> {
        let mut p = vec![0x8D, 0xA2, 0x3A, 0x00, 0, 0, 0, 0x40, 45];
        p.extend_from_slice(&[0; 23]);
        p.extend_from_slice(b"root\0\x14AAAAAAAAAAAAAAAAAAAAtest\0mysql_native_password\0");
        p.extend_from_slice(b"\x14\x0c_client_name\x06mysqlx");
        p
    }

    #[test]
    fn a_client_answers() {
        let FirstPacket::Response(got) = read_first(&captured(), capability::OFFERED, false).unwrap() else { panic!() };
        assert_eq!(got.collation, 45);
        assert_eq!(got.login.user, "root");
        assert_eq!(got.login.response, [b'A'; 20]);
        assert_eq!(got.login.database.as_deref(), Some("test"));
        assert_eq!(got.login.plugin, auth::NATIVE);
        assert_eq!(got.login.attributes, [("_client_name".to_owned(), "mysqlx".to_owned())]);
    }

    #[test]
    fn cut_anywhere_is_no_panic() {
        let whole = captured();
        for n in 0..whole.len() {
            let _ = read_first(&whole[..n], !capability::SSL, false);
            let _ = read_change_user(&whole[..n], u32::MAX);
        }
        assert!(read_first(&whole[..20], capability::OFFERED, false).is_err());
    }

    #[test]
    fn tls_is_asked_for_with_a_short_packet() {
        let offered = capability::OFFERED | capability::SSL;
        let mut request = (capability::PROTOCOL_41 | capability::SSL).to_le_bytes().to_vec();
        request.extend_from_slice(&[0, 0, 0, 1, 45]);
        request.extend_from_slice(&[0; 23]);
        assert!(matches!(read_first(&request, offered, false), Ok(FirstPacket::Tls(_))));
        request.push(b'r');
        assert!(read_first(&request, offered, false).is_err());
    }

    #[test]
    fn change_user() {
        let mut p = b"bob\0\x03abcshop\0".to_vec();
        p.extend_from_slice(&[45, 0]);
        p.extend_from_slice(b"caching_sha2_password\0");
        let (login, collation) = read_change_user(&p, capability::PLUGIN_AUTH).unwrap();
        assert_eq!((login.user.as_str(), login.response.as_slice()), ("bob", &b"abc"[..]));
        assert_eq!((login.database.as_deref(), collation), (Some("shop"), Some(45)));
        assert_eq!(login.plugin, auth::CACHING_SHA2);
        let (login, collation) = read_change_user(b"bob\0\x00\0", u32::MAX).unwrap();
        assert_eq!((login.database, collation), (None, None));
    }

    #[test]
    fn greeting_has_the_manuals_shape() {
        let mut out = Vec::new();
        write_greeting("8.0.36-Rauk", 7, &[b'n'; NONCE], capability::OFFERED, &mut out);
        let mut f = Fields::new(&out);
        assert_eq!(f.u8(), Ok(10));
        assert_eq!(f.nul_bytes(), b"8.0.36-Rauk");
        assert_eq!(f.u32(), Ok(7));
        assert_eq!(f.take(9).unwrap(), b"nnnnnnnn\0");
        let low = f.u16().unwrap();
        assert_eq!((f.u8(), f.u16()), (Ok(255), Ok(2)));
        let high = f.u16().unwrap();
        assert_eq!(u32::from(low) | u32::from(high) << 16, capability::OFFERED);
        assert_eq!(f.u8(), Ok(21));
        f.take(10).unwrap();
        assert_eq!(f.take(13).unwrap(), b"nnnnnnnnnnnn\0");
        assert_eq!(f.nul_bytes(), auth::CACHING_SHA2.as_bytes());
        assert!(f.is_empty());
    }
}
