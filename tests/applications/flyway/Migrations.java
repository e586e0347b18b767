// Flyway's commands by its API: migrate, info, validate, a failure and its repair, baseline, clean,
// two at a time.
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.flywaydb.core.api.configuration.FluentConfiguration;

import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

public class Migrations {
    static final String URL =
            "jdbc:mysql://"
                    + System.getenv("RAUK_HOST")
                    + ":"
                    + System.getenv("RAUK_PORT")
                    + "/"
                    + System.getenv("APPLICATION_DATABASE");
    static final String USER = System.getenv("APPLICATION_USER"),
            PASSWORD = System.getenv("APPLICATION_PASSWORD");

    static void check(boolean right, Object... what) {
        if (!right) throw new AssertionError(Arrays.deepToString(what));
    }

    static FluentConfiguration configuration(Path folder) {
        return Flyway.configure()
                .dataSource(URL, USER, PASSWORD)
                .locations("filesystem:" + folder)
                .cleanDisabled(false)
                .placeholders(Map.of("length", "60"));
    }

    static List<String> rows(String sql) throws Exception {
        try (var db = DriverManager.getConnection(URL, USER, PASSWORD);
                var rows = db.createStatement().executeQuery(sql)) {
            var out = new ArrayList<String>();
            while (rows.next()) {
                var line = new StringBuilder();
                for (int n = 1; n <= rows.getMetaData().getColumnCount(); n++)
                    line.append(n > 1 ? "|" : "").append(rows.getString(n));
                out.add(line.toString());
            }
            return out;
        }
    }

    public static void main(String[] arguments) throws Exception {
        var folder = Files.createDirectories(Path.of(System.getenv("APPLICATION_WORK"), "sql"));
        try (var files = Files.list(Path.of("sql"))) {
            for (var file : files.toList())
                if (!file.getFileName().toString().startsWith("V2"))
                    Files.copy(file, folder.resolve(file.getFileName()));
        }
        var flyway = configuration(folder).load();
        check(flyway.info().pending().length == 3);
        var result = flyway.migrate();
        check(result.success && result.migrationsExecuted == 3, result.migrationsExecuted);
        check(flyway.migrate().migrationsExecuted == 0);
        flyway.validate();
        check(flyway.info().current().getVersion().getVersion().equals("1.1"));
        check(
                rows("SELECT * FROM spent ORDER BY name")
                        .equals(List.of("back'slash|4.50", "double|3.00", "semi;colon|8.50")),
                rows("SELECT * FROM spent ORDER BY name"));
        check(
                rows("SELECT installed_rank, version, type, success FROM flyway_schema_history"
                         + " ORDER BY 1")
                        .equals(List.of("1|1|SQL|1", "2|1.1|SQL|1", "3|null|SQL|1")));

        // A changed repeatable migration runs again; a changed versioned one is refused, until the
        // history is repaired.
        Files.writeString(
                folder.resolve("R__view.sql"), "CREATE OR REPLACE VIEW spent AS SELECT 1 AS one;");
        check(flyway.migrate().migrationsExecuted == 1);
        Files.writeString(
                folder.resolve("V1.1__more.sql"),
                "-- changed\n" + Files.readString(folder.resolve("V1.1__more.sql")));
        try {
            flyway.validate();
            check(false, "validate found nothing");
        } catch (FlywayException error) {
            check(error.getMessage().contains("checksum mismatch"), error.getMessage());
        }
        flyway.repair();
        flyway.validate();

        // A migration that fails in the middle.
        Files.copy(Path.of("sql/V2__broken.sql"), folder.resolve("V2__broken.sql"));
        try {
            flyway.migrate();
            check(false, "the broken migration succeeded");
        } catch (FlywayException error) {
            check(
                    error.getMessage().contains("1062")
                            && error.getMessage()
                                    .contains("Duplicate entry '1' for key 'half.PRIMARY'"),
                    error.getMessage());
        }
        check(
                rows("SELECT success FROM flyway_schema_history WHERE version = '2'")
                        .equals(List.of("0")));
        Files.writeString(
                folder.resolve("V2__broken.sql"),
                "CREATE TABLE IF NOT EXISTS half (id INT PRIMARY KEY); INSERT INTO half VALUES (1),"
                    + " (2);");
        flyway.repair();
        check(flyway.migrate().migrationsExecuted == 1);

        // Everything goes, tables with foreign keys and views among it; then several processes
        // migrate at once.
        flyway.clean();
        check(rows("SHOW TABLES").isEmpty(), rows("SHOW TABLES"));
        var threads = new ArrayList<Thread>();
        var counts = java.util.Collections.synchronizedList(new ArrayList<Integer>());
        for (int n = 0; n < 4; n++) {
            var thread =
                    new Thread(
                            () ->
                                    counts.add(
                                            configuration(folder)
                                                    .load()
                                                    .migrate()
                                                    .migrationsExecuted));
            thread.start();
            threads.add(thread);
        }
        for (var thread : threads) thread.join();
        check(counts.size() == 4 && counts.stream().mapToInt(n -> n).sum() == 4, counts);
        flyway.clean();
        try (var db = DriverManager.getConnection(URL, USER, PASSWORD)) {
            db.createStatement().execute("CREATE TABLE older (id INT)");
        }
        try {
            flyway.migrate();
            check(false, "a schema without history was migrated");
        } catch (FlywayException error) {
            check(error.getMessage().contains("non-empty schema"), error.getMessage());
        }
        var baseline = configuration(folder).baselineVersion("1.1").baselineOnMigrate(true).load();
        Files.delete(folder.resolve("R__view.sql"));
        check(baseline.migrate().migrationsExecuted == 1);
        flyway.clean();
        System.out.println("Flyway's commands work");
    }
}
