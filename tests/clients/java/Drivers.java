import java.math.BigDecimal;
import java.sql.*;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.*;

/**
 * Connector/J against a running server.
 *
 * Host, port, user and password come from RAUK_HOST, RAUK_PORT, RAUK_USER, RAUK_PASSWORD; RAUK_REFERENCE=mariadb leaves out what MariaDB does not
 * have. Ends with 0 when all went well; prints one line a test.
 */
public class Drivers {
    static final String DATABASE = "driver_java";
    static final String HOST = env("RAUK_HOST", "127.0.0.1");
    static final String PORT = env("RAUK_PORT", "3306");
    static final String USER = env("RAUK_USER", "root");
    static final String PASSWORD = env("RAUK_PASSWORD", "");
    static final boolean MARIADB = "mariadb".equals(System.getenv("RAUK_REFERENCE"));

    /** Connector/J takes MariaDB for a version without fractions of a second. */
    static final int FRACTION = MARIADB ? 0 : 123456000;

    static String env(String name, String fallback) {
        String v = System.getenv(name);
        return v == null || v.isEmpty() ? fallback : v;
    }

    interface Test {
        void run() throws Exception;
    }

    interface Action {
        void run() throws SQLException;
    }

    static Connection open(String... settings) throws SQLException {
        return openAs(USER, PASSWORD, DATABASE, settings);
    }

    static Connection openAs(String user, String password, String database, String... settings) throws SQLException {
        Properties p = new Properties();
        p.setProperty("user", user);
        p.setProperty("password", password);
        p.setProperty("sslMode", "DISABLED");
        p.setProperty("allowPublicKeyRetrieval", "true");
        p.setProperty("connectionTimeZone", "UTC");
        for (String setting : settings) {
            String[] pair = setting.split("=", 2);
            p.setProperty(pair[0], pair[1]);
        }
        return DriverManager.getConnection("jdbc:mysql://" + HOST + ":" + PORT + "/" + database, p);
    }

    static void equal(Object got, Object wanted, String what) {
        boolean same = got instanceof byte[] a && wanted instanceof byte[] b ? Arrays.equals(a, b) : Objects.equals(got, wanted);
        if (!same) throw new AssertionError(what + ": got " + got + ", wanted " + wanted);
    }

    static void refused(int number, Action action) {
        try {
            action.run();
        } catch (SQLException e) {
            equal(e.getErrorCode(), number, "error number of: " + e.getMessage());
            return;
        }
        throw new AssertionError("no error, where " + number + " was due");
    }

    static Object one(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            r.next();
            return r.getObject(1);
        }
    }

    static void run(Connection c, String... statements) throws SQLException {
        try (Statement s = c.createStatement()) {
            for (String sql : statements) s.execute(sql);
        }
    }

    static void types() throws Exception {
        Object[] values = {-128, 255, -32768, -2147483648, 4294967295L, Long.MIN_VALUE, new java.math.BigInteger("9223372036854775807"),
            new BigDecimal("-1234567890.1230"), 1.5f, -2.25e100, "aß€", "it's 😀 \\ \" \n", "t".repeat(70000), new byte[] {0, -1, 39, 92},
            new byte[10000], LocalDate.of(2024, 2, 29), LocalDateTime.of(2024, 2, 29, 23, 59, 58, FRACTION), Time.valueOf("12:34:56"), true, null};
        String[] kinds = {"TINYINT", "TINYINT UNSIGNED", "SMALLINT", "INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED", "DECIMAL(20,4)", "FLOAT",
            "DOUBLE", "CHAR(10)", "VARCHAR(100)", "MEDIUMTEXT", "VARBINARY(20)", "BLOB", "DATE", "DATETIME(6)", "TIME", "TINYINT(1)", "INT"};
        for (String prepare : List.of("useServerPrepStmts=false", "useServerPrepStmts=true")) {
            try (Connection c = open(prepare)) {
                StringBuilder columns = new StringBuilder("id INT PRIMARY KEY");
                for (int i = 0; i < kinds.length; i++) columns.append(", c").append(i).append(' ').append(kinds[i]);
                run(c, "DROP TABLE IF EXISTS types", "CREATE TABLE types (" + columns + ")");
                try (PreparedStatement s = c.prepareStatement("INSERT INTO types VALUES (1" + ", ?".repeat(values.length) + ")")) {
                    for (int i = 0; i < values.length; i++) s.setObject(i + 1, values[i]);
                    equal(s.executeUpdate(), 1, "rows inserted");
                }
                try (PreparedStatement s = c.prepareStatement("SELECT * FROM types WHERE id = ?")) {
                    s.setInt(1, 1);
                    ResultSet r = s.executeQuery();
                    r.next();
                    ResultSetMetaData meta = r.getMetaData();
                    for (int i = 0; i < values.length; i++) {
                        Object wanted = values[i], got;
                        if (wanted instanceof LocalDate) got = r.getObject(i + 2, LocalDate.class);
                        else if (wanted instanceof LocalDateTime) got = r.getObject(i + 2, LocalDateTime.class);
                        else if (wanted instanceof byte[]) got = r.getBytes(i + 2);
                        else got = r.getObject(i + 2);
                        equal(got, wanted, prepare + ", " + kinds[i] + " (" + meta.getColumnTypeName(i + 2) + ")");
                    }
                }
            }
        }
    }

    static void prepared() throws Exception {
        for (String more : List.of("rewriteBatchedStatements=false", "rewriteBatchedStatements=true")) {
            try (Connection c = open("useServerPrepStmts=true", "cachePrepStmts=true", more)) {
                run(c, "DROP TABLE IF EXISTS prepared", "CREATE TABLE prepared (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20), n BIGINT)");
                try (PreparedStatement s = c.prepareStatement("INSERT INTO prepared (v, n) VALUES (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
                    for (int i = 1; i <= 100; i++) {
                        s.setString(1, i % 10 == 0 ? null : "v" + i);
                        s.setLong(2, i);
                        s.addBatch();
                    }
                    equal(s.executeBatch().length, 100, "batch");
                    ResultSet keys = s.getGeneratedKeys();
                    keys.next();
                    equal(keys.getInt(1), 1, "first key");
                }
                try (PreparedStatement s = c.prepareStatement("SELECT SUM(n), COUNT(*), COUNT(v) FROM prepared WHERE id > ?")) {
                    for (int after : new int[] {0, 50}) {
                        s.setInt(1, after);
                        ResultSet r = s.executeQuery();
                        r.next();
                        equal(r.getLong(1), after == 0 ? 5050L : 3775L, "sum");
                        equal(r.getLong(2) - r.getLong(3), after == 0 ? 10L : 5L, "nulls");
                    }
                }
            }
        }
    }

    static void fetchSizes() throws Exception {
        for (String more : List.of("useCursorFetch=true", "useCursorFetch=false")) {
            try (Connection c = open(more)) {
                run(c, "DROP TABLE IF EXISTS cursors", "CREATE TABLE cursors (n INT PRIMARY KEY)");
                StringJoiner rows = new StringJoiner(",", "INSERT INTO cursors VALUES ", "");
                for (int i = 1; i <= 2500; i++) rows.add("(" + i + ")");
                run(c, rows.toString());
                try (Statement s = c.createStatement(); Statement between = c.createStatement()) {
                    boolean cursor = more.endsWith("true");
                    s.setFetchSize(cursor ? 100 : Integer.MIN_VALUE);
                    ResultSet r = s.executeQuery("SELECT n FROM cursors ORDER BY n");
                    long sum = 0;
                    while (r.next()) {
                        sum += r.getInt(1);
                        // With a cursor the connection is free for other statements.
                        if (cursor && r.getInt(1) % 1000 == 0) between.executeQuery("SELECT 1").next();
                    }
                    equal(sum, 2500L * 2501 / 2, more);
                }
            }
        }
    }

    static void transactions() throws Exception {
        try (Connection c = open()) {
            run(c, "DROP TABLE IF EXISTS tx", "CREATE TABLE tx (id INT PRIMARY KEY)");
            for (int level : new int[] {Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_SERIALIZABLE, Connection.TRANSACTION_REPEATABLE_READ}) {
                c.setTransactionIsolation(level);
                equal(c.getTransactionIsolation(), level, "isolation");
                c.setAutoCommit(false);
                run(c, "INSERT INTO tx VALUES (1)");
                c.rollback();
                equal(one(c, "SELECT COUNT(*) FROM tx"), 0L, "after rollback");
                c.rollback();
                c.setAutoCommit(true);
            }
            c.setAutoCommit(false);
            run(c, "INSERT INTO tx VALUES (1)");
            Savepoint here = c.setSavepoint();
            run(c, "INSERT INTO tx VALUES (2)");
            c.rollback(here);
            c.commit();
            c.setAutoCommit(true);
            equal(one(c, "SELECT COUNT(*) FROM tx"), 1L, "after savepoint");
        }
    }

    static void errors() throws Exception {
        try (Connection c = open()) {
            run(c, "DROP TABLE IF EXISTS errors", "CREATE TABLE errors (id INT PRIMARY KEY)", "INSERT INTO errors VALUES (1)");
            refused(1062, () -> run(c, "INSERT INTO errors VALUES (1)"));
            refused(1146, () -> run(c, "SELECT * FROM nowhere"));
            refused(1064, () -> run(c, "SELEKT 1"));
            refused(1054, () -> run(c, "SELECT x FROM errors"));
            refused(1045, () -> openAs(USER, "certainly wrong", DATABASE).close());
            refused(1049, () -> openAs(USER, PASSWORD, "nowhere_at_all").close());
        }
    }

    static void multiStatements() throws Exception {
        try (Connection c = open("allowMultiQueries=true"); Statement s = c.createStatement()) {
            List<Object> got = new ArrayList<>();
            boolean isResult = s.execute("SELECT 1; DO 0; SELECT 2");
            while (true) {
                if (isResult) {
                    ResultSet r = s.getResultSet();
                    r.next();
                    got.add(r.getInt(1));
                } else if (s.getUpdateCount() == -1) {
                    break;
                } else {
                    got.add("count");
                }
                isResult = s.getMoreResults();
            }
            equal(got, List.of(1, "count", 2), "results");
        }
    }

    static void largePackets() throws Exception {
        for (String prepare : List.of("useServerPrepStmts=false", "useServerPrepStmts=true")) {
            try (Connection c = open(prepare, "maxAllowedPacket=67108864")) {
                run(c, "DROP TABLE IF EXISTS large", "CREATE TABLE large (id INT PRIMARY KEY, a LONGBLOB, b LONGTEXT)");
                byte[] a = new byte[9_000_000];
                new Random(1).nextBytes(a);
                String b = "ü".repeat(5_000_000);
                try (PreparedStatement s = c.prepareStatement("INSERT INTO large VALUES (1, ?, ?)")) {
                    s.setBytes(1, a);
                    s.setString(2, b);
                    s.executeUpdate();
                }
                try (PreparedStatement s = c.prepareStatement("SELECT a, b FROM large WHERE id = ?")) {
                    s.setInt(1, 1);
                    ResultSet r = s.executeQuery();
                    r.next();
                    equal(r.getBytes(1), a, prepare);
                    equal(r.getString(2).equals(b), true, prepare);
                }
                // A stream goes as long data.
                try (PreparedStatement s = c.prepareStatement("INSERT INTO large VALUES (2, ?, 'x')")) {
                    s.setBinaryStream(1, new java.io.ByteArrayInputStream(Arrays.copyOf(a, 100_000)));
                    s.executeUpdate();
                }
                equal(((Number) one(c, "SELECT LENGTH(a) FROM large WHERE id = 2")).intValue(), 100_000, "streamed");
            }
        }
    }

    static void tls() throws Exception {
        try (Connection c = open("sslMode=REQUIRED"); Statement s = c.createStatement()) {
            ResultSet r = s.executeQuery("SHOW STATUS LIKE 'Ssl_cipher'");
            r.next();
            equal(r.getString(2).isEmpty(), false, "cipher");
        }
        try (Connection c = open("useCompression=true")) {
            equal(one(c, "SELECT REPEAT('abc', 100000)"), "abc".repeat(100000), "compressed");
        }
    }

    static void usersAndReset() throws Exception {
        try (Connection c = open()) {
            for (String plugin : MARIADB ? List.of("mysql_native_password") : List.of("mysql_native_password", "caching_sha2_password")) {
                String name = "java_" + plugin.substring(0, 6);
                run(c, "DROP USER IF EXISTS " + name + "@'%'");
                run(c, "CREATE USER " + name + "@'%' IDENTIFIED " + (MARIADB ? "" : "WITH " + plugin + " ") + "BY 's3cret€'");
                run(c, "GRANT ALL ON " + DATABASE + ".* TO " + name + "@'%'");
                for (String mode : List.of("DISABLED", "REQUIRED", "DISABLED")) {
                    try (Connection own = openAs(name, "s3cret€", DATABASE, "sslMode=" + mode)) {
                        equal(one(own, "SELECT CURRENT_USER()"), name + "@%", "user");
                    }
                }
                try (Connection other = open()) {
                    other.unwrap(com.mysql.cj.jdbc.JdbcConnection.class).changeUser(name, "s3cret€");
                    equal(one(other, "SELECT CURRENT_USER()"), name + "@%", "changed user");
                }
                run(c, "DROP USER " + name + "@'%'");
            }
            run(c, "SET @a = 5");
            c.unwrap(com.mysql.cj.jdbc.JdbcConnection.class).resetServerState();
            equal(one(c, "SELECT @a"), null, "after reset");
        }
    }

    static void metadata() throws Exception {
        try (Connection c = open()) {
            run(c, "DROP TABLE IF EXISTS meta", "CREATE TABLE meta (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(30), KEY by_name (name))");
            DatabaseMetaData m = c.getMetaData();
            ResultSet r = m.getColumns(DATABASE, null, "meta", null);
            List<String> columns = new ArrayList<>();
            while (r.next()) columns.add(r.getString("COLUMN_NAME") + " " + r.getString("TYPE_NAME") + " " + r.getInt("COLUMN_SIZE") + " " + r.getString("IS_AUTOINCREMENT"));
            equal(columns, List.of("id INT UNSIGNED 10 YES", "name VARCHAR 30 NO"), "columns");
            r = m.getPrimaryKeys(DATABASE, null, "meta");
            r.next();
            equal(r.getString("COLUMN_NAME"), "id", "primary key");
            r = m.getTables(DATABASE, null, "met%", new String[] {"TABLE"});
            r.next();
            equal(r.getString("TABLE_NAME"), "meta", "table");
            try (Statement s = c.createStatement()) {
                ResultSetMetaData d = s.executeQuery("SELECT id, name AS n FROM meta").getMetaData();
                equal(d.isAutoIncrement(1), true, "auto increment");
                equal(d.isSigned(1), false, "signed");
                equal(d.getColumnLabel(2) + d.getColumnName(2) + d.getTableName(2), "nnamemeta", "names");
                equal(d.getColumnDisplaySize(2), 30, "display size");
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (Connection c = openAs(USER, PASSWORD, "")) {
            run(c, "DROP DATABASE IF EXISTS " + DATABASE, "CREATE DATABASE " + DATABASE);
        }
        Map<String, Test> tests = new LinkedHashMap<>();
        tests.put("types", Drivers::types);
        tests.put("prepared", Drivers::prepared);
        tests.put("fetch sizes", Drivers::fetchSizes);
        tests.put("transactions", Drivers::transactions);
        tests.put("errors", Drivers::errors);
        tests.put("multi statements", Drivers::multiStatements);
        tests.put("large packets", Drivers::largePackets);
        tests.put("tls and compression", Drivers::tls);
        tests.put("users and reset", Drivers::usersAndReset);
        tests.put("metadata", Drivers::metadata);
        boolean failed = false;
        for (var test : tests.entrySet()) {
            try {
                test.getValue().run();
                System.out.println("java " + test.getKey() + ": ok");
            } catch (Throwable e) {
                failed = true;
                System.out.println("java " + test.getKey() + ": FAILED");
                e.printStackTrace(System.out);
            }
        }
        try (Connection c = openAs(USER, PASSWORD, "")) {
            run(c, "DROP DATABASE " + DATABASE);
        }
        System.exit(failed ? 1 : 0);
    }
}
