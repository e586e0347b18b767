//! Which settings are taken, and what is said of those that are not.

use super::*;

fn load(file: Option<&str>, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<Settings, String> {
    let path = Path::new("rauk.toml");
    let environment = environment.iter().map(|(a, b)| (a.to_string(), b.to_string()));
    let flags: Vec<(&str, String)> = flags.iter().map(|(a, b)| (*a, b.to_string())).collect();
    Settings::load(file.map(|text| (path, text)), environment, &flags).map_err(|e| e.to_string())
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    let file = "mysql-port = 1\nhttp-port = 2\nmemory-limit = \"200MiB\"\nrequire-tls = true\n";
    let settings = load(
        Some(file),
        &[("RAUK_HTTP_PORT", "3"), ("RAUK_MEMORY_LIMIT", "300MiB"), ("HOME", "x")],
        &[("memory-limit", "400MiB")],
    )
    .unwrap();
    assert_eq!((settings.mysql_port, settings.http_port, settings.memory_limit), (1, 3, 400 << 20));
    assert!(settings.require_tls);
    assert_eq!(load(None, &[], &[]).unwrap(), Settings::default());
}

/// What asks for no login is not open to others because SQL is.
#[test]
fn the_http_port_stays_on_loopback_unless_told() {
    let at = |flags: &[(&str, &str)]| load(None, &[], flags).unwrap().http_address().to_string();
    assert_eq!(at(&[]), "127.0.0.1");
    assert_eq!(at(&[("host", "0.0.0.0")]), "127.0.0.1");
    assert_eq!(at(&[("host", "10.1.2.3")]), "127.0.0.1");
    assert_eq!(at(&[("host", "::")]), "::1");
    assert_eq!(at(&[("host", "127.0.0.2")]), "127.0.0.2");
    assert_eq!(at(&[("host", "10.1.2.3"), ("http-host", "0.0.0.0")]), "0.0.0.0");
    assert_eq!(at(&[("http-host", "localhost")]), "127.0.0.1");
    let error = load(None, &[], &[("http-host", "everywhere")]).unwrap_err();
    assert!(error.contains("http-host") && error.contains("IP address"), "{error}");
}

#[test]
fn a_wrong_key_names_itself_and_its_nearest() {
    let error = load(Some("mysql-prot = 1"), &[], &[]).unwrap_err();
    assert_eq!(error, "rauk.toml: 'mysql-prot': there is no setting 'mysql-prot'; did you mean 'mysql-port'?");
    let error = load(None, &[("RAUK_MEMORYLIMIT", "1G")], &[]).unwrap_err();
    assert_eq!(
        error,
        "environment variable RAUK_MEMORYLIMIT: there is no setting 'memorylimit'; did you mean 'memory-limit'?"
    );
    let error = load(Some("[mysql]\nport = 1"), &[], &[]).unwrap_err();
    assert!(error.contains("'mysql' is table"), "{error}");
}

#[test]
fn a_wrong_value_names_its_key_and_what_is_wanted() {
    for (key, value, wanted) in [
        ("mysql-port", "70000", "a port number"),
        ("durability", "fsink", "did you mean 'fsync'"),
        ("memory-limit", "lots", "a size such as"),
        ("memory-limit", "1MiB", "at least 16MiB"),
        ("host", "example", "an IP address"),
        ("redo-segment", "5", "1MiB to 1GiB"),
        ("require-tls", "perhaps", "true or false"),
        ("log-level", "inof", "did you mean 'info'"),
        ("tls-cert", "a.pem", "tls-cert and tls-key go together"),
        ("native-port", "-1", "a port number"),
        ("native-tls-ca", "a.pem", "go together"),
        ("native-threads", "257", "0 to 256"),
        ("native-longest-wait", "2s", "microseconds"),
        ("native-longest-spin", "1000001", "microseconds"),
    ] {
        let error = load(None, &[], &[(key, value)]).unwrap_err();
        assert!(error.contains(key) && error.contains(wanted), "{error}");
    }
}

#[test]
fn a_file_that_is_not_toml_is_one_line_with_place_and_way_out() {
    for (file, place) in [
        ("mysql-port = ", "line 1, 'mysql-port ='"),
        ("threads = 2\nmemory-limit = 4GiB\n", "line 2, 'memory-limit = 4GiB'"),
        ("host = \"127.0.0.1\n", "line 1, 'host = \"127.0.0.1'"),
        ("threads = 2\nthreads = 3", "line 2, 'threads = 3'"),
    ] {
        let error = load(Some(file), &[], &[]).unwrap_err();
        assert!(error.starts_with(&format!("rauk.toml: {place}: ")), "{error}");
        assert!(error.contains("write key = \"text\"") && !error.contains('\n'), "{error}");
    }
    let error = load(Some("memory-limit = \"4 gibibytes\""), &[], &[]).unwrap_err();
    assert_eq!(error, "rauk.toml: 'memory-limit': '4 gibibytes' will not do; wanted: a size such as 512MiB or 4GiB");
}

/// The file of the Debian package: its settings and those that it shows as comments.
#[test]
fn the_packages_configuration_is_taken() {
    let file = include_str!("../../../../packaging/rauk.toml");
    let settings = load(Some(file), &[], &[]).unwrap();
    assert_eq!(settings.data_dir, Path::new("/var/lib/rauk"));
    assert!(settings.host.is_loopback() && settings.http_address().is_loopback());
    let shown: Vec<&str> = file.lines().filter_map(|line| line.strip_prefix("#")).collect();
    let shown: Vec<&str> =
        shown.into_iter().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    assert!(shown.len() > 5, "{shown:?}");
    for line in &shown {
        load(Some(line), &[], &[("tls-cert", "c.pem"), ("tls-key", "k.pem")]).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
}

/// A unit works wherever a size can be given, and what is no size is refused in the same words.
#[test]
fn sizes_take_units_everywhere() {
    let get = |s: Settings, key: &str| match key {
        "memory-limit" => s.memory_limit,
        "history-limit" => s.history_limit,
        "redo-segment" => s.redo_segment,
        _ => s.checkpoint_redo,
    };
    let sizes: Vec<&str> = KEYS.iter().filter(|k| k.value_name == "SIZE").map(|k| k.name).collect();
    assert_eq!(sizes, ["memory-limit", "history-limit", "redo-segment", "checkpoint-redo"]);
    for key in sizes {
        for text in ["64MiB", "64m", "67108864", "0.0625G"] {
            let variable = format!("RAUK_{}", key.to_uppercase().replace('-', "_"));
            assert_eq!(get(load(None, &[], &[(key, text)]).unwrap(), key), 64 << 20, "--{key} {text}");
            assert_eq!(get(load(None, &[(&variable, text)], &[]).unwrap(), key), 64 << 20, "{variable}={text}");
            assert_eq!(get(load(Some(&format!("{key} = \"{text}\"")), &[], &[]).unwrap(), key), 64 << 20);
        }
        let error = load(None, &[], &[(key, "4 parsec")]).unwrap_err();
        assert_eq!(error, format!("--{key}: '4 parsec' will not do; wanted: a size such as 512MiB or 4GiB"));
    }
    // A number of TOML is bytes.
    assert_eq!(load(Some("memory-limit = 67108864"), &[], &[]).unwrap().memory_limit, 64 << 20);
}

#[test]
fn a_memory_limit_beyond_the_machines_memory_is_refused() {
    let settings = Settings { memory_limit: 5 << 30, ..Settings::default() };
    let machine = |bytes, of: &str| Memory { bytes, of: of.into() };
    assert_eq!(settings.check_memory(None), Ok(()));
    assert_eq!(settings.check_memory(Some(&machine(5 << 30, "this machine has"))), Ok(()));
    let error = settings.check_memory(Some(&machine(4 << 30, "the control group /x allows"))).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "memory-limit: 5GiB is more than the 4GiB that the control group /x allows; give at most 4GiB"
        ),
        "{error}"
    );
    let error = load(None, &[], &[("memory-limit", "1000TiB")]).unwrap_err();
    assert!(error.contains("memory-limit: 1000TiB is more than") && !error.contains('\n'), "{error}");
}

#[test]
fn what_container_orchestrators_announce_is_passed_over() {
    let announced = [
        ("RAUK_PORT", "tcp://10.0.0.1:3306"),
        ("RAUK_SERVICE_HOST", "10.0.0.1"),
        ("RAUK_SERVICE_PORT_MYSQL", "3306"),
        ("RAUK_PORT_3306_TCP_ADDR", "10.0.0.1"),
        ("RAUK_MYSQL_PORT", "tcp://10.0.0.1:3306"),
    ];
    assert_eq!(load(None, &announced, &[]).unwrap(), Settings::default());
    assert_eq!(load(None, &[("RAUK_MYSQL_PORT", "1")], &[]).unwrap().mysql_port, 1);
    let error = load(None, &[("RAUK_PORT", "3306")], &[]).unwrap_err();
    assert!(error.contains("RAUK_PORT") && error.contains("there is no setting 'port'"), "{error}");
}

#[test]
fn roots_password_is_given_once_and_shown_nowhere() {
    let settings = load(None, &[("RAUK_ROOT_PASSWORD", "secret word")], &[]).unwrap();
    assert_eq!(settings.root_password, Some(Hidden("secret word".into())));
    assert!(!format!("{settings:?}").contains("secret word"));
    let both = load(None, &[("RAUK_ROOT_PASSWORD", "x")], &[("root-password-file", "f")]).unwrap_err();
    assert!(both.contains("give one of them"), "{both}");
    let empty = load(None, &[("RAUK_ROOT_PASSWORD", "")], &[]).unwrap_err();
    assert!(empty.contains("RAUK_ROOT_PASSWORD: it is empty"), "{empty}");
    // A flag would be seen by all users of the machine.
    assert!(load(None, &[], &[("root-password", "x")]).unwrap_err().contains("there is no setting"));
    for refused in
        [load(Some("reset-root-password = \"f\""), &[], &[]), load(None, &[("RAUK_RESET_ROOT_PASSWORD", "f")], &[])]
    {
        let refused = refused.unwrap_err();
        assert!(refused.contains("is for one start: give it on the command line"), "{refused}");
    }
    let reset = load(None, &[], &[("reset-root-password", "f")]).unwrap().reset_root_password;
    assert_eq!(reset.as_deref(), Some(Path::new("f")));
}
