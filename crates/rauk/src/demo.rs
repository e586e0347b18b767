//! `rauk demo`: a running database with a small sample, shown in a few statements, for a first look.

use crate::client::{self, Options};
use crate::config::Settings;
use crate::out;
use crate::shell;
use crate::start::{self, Running};
use mysql::prelude::Queryable;

/// Statements that are shown, each with what it is for.
const TOUR: &[(&str, &str)] = &[
    ("A row by its key", "SELECT * FROM players WHERE id = 4711"),
    ("The top of a leaderboard, from an ordered index", "SELECT name, score FROM players ORDER BY score DESC LIMIT 5"),
    ("How that was answered", "EXPLAIN SELECT name, score FROM players ORDER BY score DESC LIMIT 5"),
    (
        "Countries by points",
        "SELECT country, COUNT(*) AS players, SUM(score) AS points, AVG(score) AS average FROM players GROUP BY country ORDER BY points DESC LIMIT 5",
    ),
    (
        "A transfer of points: both rows change or none",
        "BEGIN; UPDATE players SET score = score - 50 WHERE id = 1; UPDATE players SET score = score + 50 WHERE id = 2; COMMIT",
    ),
    (
        "A join",
        "SELECT p.name, g.title, s.points FROM sessions s JOIN players p ON p.id = s.player JOIN games g ON g.id = s.game WHERE s.player = 42 ORDER BY s.points DESC LIMIT 3",
    ),
    ("What is there", "SHOW TABLES"),
    (
        "Memory, by table",
        "SELECT TABLE_NAME, TABLE_ROWS, DATA_LENGTH, INDEX_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'demo' ORDER BY TABLE_NAME",
    ),
];

pub fn run(settings: &Settings) -> Result<(), String> {
    if settings.names_root_password() {
        return Err("the demo works with a root without a password: leave RAUK_ROOT_PASSWORD, --root-password-file and --reset-root-password out".into());
    }
    start::run(settings, |running| show(settings, running))
}

fn show(settings: &Settings, running: &Running) -> Result<(), String> {
    let mysql = running.mysql().ok_or("the demo needs a node with the role sql")?;
    let options = Options::root_at(&mysql.ip().to_string(), mysql.port());
    out::line(format_args!("{}\n", running.ready_line(settings)))?;
    tour(&options)?;
    out::line(format_args!(
        "\nThe server goes on running. Connect to it:\n  mariadb -h {host} -P {port} -u root demo\n  {program} sql --port {port} --database demo\nCtrl-C stops it; the data stays in {directory}.",
        host = mysql.ip(),
        port = mysql.port(),
        program = std::env::current_exe().map_or("rauk".into(), |p| p.display().to_string()),
        directory = settings.data_dir.display(),
    ))?;
    out::line(format_args!("(Ctrl-C stops)"))?;
    Ok(())
}

fn tour(options: &Options) -> Result<(), String> {
    let mut connection = client::connect(options)?.conn;
    let loaded: Option<String> = connection.query_first("SHOW DATABASES LIKE 'demo'").map_err(|e| e.to_string())?;
    if loaded.is_none() {
        load(&mut connection)?;
    }
    connection.query_drop("USE demo").map_err(|e| e.to_string())?;
    for (title, sql) in TOUR {
        out::line(format_args!("-- {title}\n{sql};"))?;
        shell::show(&mut connection, sql)?;
        out::line(format_args!(""))?;
    }
    Ok(())
}

/// 10 000 players, 20 games, 30 000 sessions, made from a fixed recipe.
fn load(connection: &mut mysql::Conn) -> Result<(), String> {
    const COUNTRIES: &[&str] = &["SE", "DE", "FR", "IT", "ES", "PL", "NL", "FI", "NO", "DK"];
    const FIRST: &[&str] = &["Ada", "Björn", "Chloé", "Dmitri", "Eva", "Farid", "Greta", "Hugo", "Inés", "Jun"];
    const LAST: &[&str] = &["Ek", "Lund", "Moreau", "Novak", "Rossi", "Silva", "Sand", "Weiß", "Yılmaz", "Åberg"];
    let mut drop = |sql: &str| connection.query_drop(sql).map_err(|e| format!("loading the sample: {e}"));
    let started = std::time::Instant::now();
    drop("CREATE DATABASE demo")?;
    drop("USE demo")?;
    drop(
        "CREATE TABLE players (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(60) NOT NULL, country CHAR(2) NOT NULL, score BIGINT NOT NULL DEFAULT 0, \
         joined DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, KEY (score), KEY (country, score), UNIQUE KEY (name))",
    )?;
    drop("CREATE TABLE games (id INT PRIMARY KEY, title VARCHAR(60) NOT NULL)")?;
    drop(
        "CREATE TABLE sessions (player INT, started DATETIME, game INT NOT NULL, points INT NOT NULL, \
         PRIMARY KEY (player, started), KEY (game)) PARTITION BY KEY (player)",
    )?;
    // A multiplicative sequence stands in for randomness, so that everybody sees the same rows.
    let mix = |n: u64| (n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)) >> 33;
    let mut rows = 0;
    for chunk in 0..10u64 {
        let players: Vec<String> = (1..=1000)
            .map(|i| chunk * 1000 + i)
            .map(|i| {
                let (first, last) = (FIRST[(i % 10) as usize], LAST[(i / 10 % 10) as usize]);
                format!(
                    "({i}, '{first} {last} {i}', '{}', {})",
                    COUNTRIES[(mix(i) % 10) as usize],
                    mix(i * 7) % 1_000_000
                )
            })
            .collect();
        drop(&format!("INSERT INTO players (id, name, country, score) VALUES {}", players.join(", ")))?;
        let sessions: Vec<String> = (0..3000)
            .map(|i| chunk * 3000 + i)
            .map(|i| {
                let (day, second) = (i / 10_000 + 1, i % 60);
                format!(
                    "({}, '2026-01-{day:02} {:02}:{:02}:{second:02}', {}, {})",
                    i % 10_000 + 1,
                    i % 24,
                    i / 24 % 60,
                    mix(i) % 20 + 1,
                    mix(i * 3) % 500
                )
            })
            .collect();
        drop(&format!("INSERT INTO sessions VALUES {}", sessions.join(", ")))?;
        rows += players.len() + sessions.len();
    }
    let games: Vec<String> = (1..=20).map(|i| format!("({i}, 'Game {i}')")).collect();
    drop(&format!("INSERT INTO games VALUES {}", games.join(", ")))?;
    rows += games.len();
    out::line(format_args!("loaded {rows} rows, on disk, in {:.0} ms\n", started.elapsed().as_secs_f64() * 1e3))?;
    Ok(())
}
