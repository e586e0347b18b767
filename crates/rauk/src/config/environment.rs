//! Environment variables that are not ours, though their names begin with `RAUK_`.
//!
//! Kubernetes and Docker's links announce each service to every container beside it, by variables that begin with the
//! service's name. A service that is called `rauk`, or `rauk-mysql`, would so keep the server from starting, since an
//! unknown `RAUK_` variable is refused. They are told by the ends of their names and, where such a name could be a setting
//! (`RAUK_MYSQL_PORT`), by a value that is no port but an address with a scheme.

/// Protocols of announced ports.
const SCHEMES: [&str; 3] = ["tcp://", "udp://", "sctp://"];

/// Whether an orchestrator has set this variable to announce a service.
pub fn is_orchestrators(name: &str, value: &str) -> bool {
    let Some(rest) = name.strip_prefix("RAUK_") else { return false };
    // RAUK_SERVICE_HOST, RAUK_SQL_SERVICE_PORT, RAUK_SERVICE_PORT_MYSQL.
    let service = format!("_{rest}");
    if service.ends_with("_SERVICE_HOST") || service.contains("_SERVICE_PORT") {
        return true;
    }
    // RAUK_PORT=tcp://10.0.0.1:3306, and RAUK_NAME=/web/rauk of a link.
    if service.ends_with("_PORT") {
        return is_address(value);
    }
    if rest == "NAME" && value.starts_with('/') {
        return true;
    }
    // RAUK_PORT_3306_TCP=tcp://…, RAUK_PORT_3306_TCP_ADDR.
    let parts: Vec<&str> = service.split('_').collect();
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    parts.windows(3).any(|p| p[0] == "PORT" && is_port(p[1]) && matches!(p[2], "TCP" | "UDP" | "SCTP"))
}

/// An address as orchestrators write it.
pub fn is_address(value: &str) -> bool {
    SCHEMES.iter().any(|scheme| value.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_announces_a_service_is_not_a_setting() {
        for (name, value) in [
            ("RAUK_SERVICE_HOST", "10.0.0.1"),
            ("RAUK_SERVICE_PORT", "3306"),
            ("RAUK_SERVICE_PORT_MYSQL", "3306"),
            ("RAUK_SQL_SERVICE_HOST", "10.0.0.1"),
            ("RAUK_PORT", "tcp://10.0.0.1:3306"),
            ("RAUK_MYSQL_PORT", "tcp://10.0.0.1:3306"),
            ("RAUK_PORT_3306_TCP", "tcp://10.0.0.1:3306"),
            ("RAUK_SQL_PORT_3306_TCP_ADDR", "10.0.0.1"),
            ("RAUK_PORT_53_UDP_PROTO", "udp"),
            ("RAUK_NAME", "/web/rauk"),
        ] {
            assert!(is_orchestrators(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("RAUK_MYSQL_PORT", "3306"),
            ("RAUK_PORT", "3306"),
            ("RAUK_CLUSTER_NAME", "rauk"),
            ("RAUK_HTTP_HOST", "0.0.0.0"),
            ("RAUK_PORTS", "tcp://10.0.0.1:3306"),
            ("SERVICE_HOST", "10.0.0.1"),
        ] {
            assert!(!is_orchestrators(name, value), "{name}={value}");
        }
    }
}
