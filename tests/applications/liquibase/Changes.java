// Liquibase's commands: update, status, tag, snapshot, rollback, generate-changelog, diff,
// drop-all.
import liquibase.CatalogAndSchema;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.compare.CompareControl;
import liquibase.diff.output.DiffOutputControl;
import liquibase.diff.output.changelog.DiffToChangeLog;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import liquibase.structure.core.*;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.io.StringWriter;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

public class Changes {
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

    static Liquibase open() throws Exception {
        return open("changes/main.xml");
    }

    static Liquibase open(String file) throws Exception {
        Database database =
                DatabaseFactory.getInstance()
                        .findCorrectDatabaseImplementation(
                                new JdbcConnection(
                                        DriverManager.getConnection(URL, USER, PASSWORD)));
        return new Liquibase(file, new DirectoryResourceAccessor(Path.of(".")), database);
    }

    public static void main(String[] arguments) throws Exception {
        Contexts contexts = new Contexts("plain");
        LabelExpression labels = new LabelExpression();
        try (var liquibase = open()) {
            check(
                    liquibase.getDatabase().getShortName().equals("mysql"),
                    liquibase.getDatabase().getShortName());
            check(
                    liquibase.listUnrunChangeSets(contexts, labels).size() == 8,
                    liquibase.listUnrunChangeSets(contexts, labels).size());
            var sql = new StringWriter();
            liquibase.update(contexts, labels, sql);
            check(sql.toString().contains("CREATE TABLE liquibase.country"), sql);
            check(rows("SHOW TABLES LIKE 'country'").isEmpty());
            liquibase.update(contexts, labels);
            check(liquibase.listUnrunChangeSets(contexts, labels).isEmpty());
            check(
                    rows("SELECT code, name, area, member, founded, story FROM country ORDER BY"
                             + " code")
                            .equals(
                                    List.of(
                                            "AT|Österreich|83880.00|1|1945-04-27|null",
                                            "DE|Deutsch;land|357022.50|1|1949-05-23|long; story",
                                            "XX|null|null|1|null|null")),
                    rows(
                            "SELECT code, name, area, member, founded, story FROM country ORDER BY"
                                + " code"));
            check(
                    rows("SELECT id, `both`, tall FROM people ORDER BY id")
                            .equals(
                                    List.of(
                                            "1000|Ada's “sister” / none@example.org|1.75",
                                            "1001|Bob / none@example.org|null")),
                    rows("SELECT id, `both`, tall FROM people ORDER BY id"));
            check(
                    rows("SELECT id, exectype FROM DATABASECHANGELOG ORDER BY orderexecuted")
                            .equals(
                                    List.of(
                                            "1|EXECUTED",
                                            "2|EXECUTED",
                                            "3|EXECUTED",
                                            "4|EXECUTED",
                                            "5|EXECUTED",
                                            "6|EXECUTED",
                                            "8|MARK_RAN",
                                            "9|EXECUTED")));
            check(rows("SELECT code FROM lookup").equals(List.of("AT")));
            liquibase.update(contexts, labels);
            liquibase.validate();
            liquibase.tag("now");
            check(
                    rows("SELECT COUNT(*) FROM DATABASECHANGELOG WHERE tag = 'now'")
                            .equals(List.of("1")));

            // What the tables are, by Connector/J's metadata.
            var snapshot =
                    SnapshotGeneratorFactory.getInstance()
                            .createSnapshot(
                                    CatalogAndSchema.DEFAULT,
                                    liquibase.getDatabase(),
                                    new SnapshotControl(liquibase.getDatabase()));
            var country = snapshot.get((Table) new Table().setName("country"));
            check(
                    country != null
                            && country.getRemarks().equals("where people live")
                            && country.getPrimaryKey() != null,
                    country);
            var code = country.getColumn("code");
            check(
                    code.getType().toString().startsWith("CHAR(2")
                            && !code.isNullable()
                            && code.getRemarks().equals("ISO's"),
                    code.getType(),
                    code.getRemarks());
            check(
                    country.getColumn("id").isAutoIncrement()
                            && country.getColumn("area")
                                    .getType()
                                    .toString()
                                    .equals("DECIMAL(12, 2)"),
                    country.getColumn("area").getType());
            check(
                    country.getColumn("changed")
                            .getDefaultValue()
                            .toString()
                            .contains("CURRENT_TIMESTAMP(6)"),
                    country.getColumn("changed").getDefaultValue());
            check(snapshot.get(ForeignKey.class).size() == 2, snapshot.get(ForeignKey.class));
            check(
                    snapshot.get(View.class).size() == 1
                            && snapshot.get(UniqueConstraint.class).size() >= 1,
                    snapshot.get(View.class));
            check(
                    snapshot.get(View.class)
                            .iterator()
                            .next()
                            .getDefinition()
                            .toLowerCase()
                            .contains("select"));

            // A changelog made from the database builds one that does not differ.
            var generated = new ByteArrayOutputStream();
            open(null)
                    .generateChangeLog(
                            CatalogAndSchema.DEFAULT,
                            new DiffToChangeLog(
                                    new DiffOutputControl(
                                            false,
                                            false,
                                            false,
                                            new CompareControl.SchemaComparison[0])),
                            new PrintStream(generated, true, "UTF-8"),
                            Table.class,
                            Column.class,
                            PrimaryKey.class,
                            ForeignKey.class,
                            Index.class,
                            UniqueConstraint.class,
                            View.class);
            var text = generated.toString("UTF-8");
            for (var wanted :
                    List.of(
                            "createTable",
                            "addForeignKeyConstraint",
                            "createIndex",
                            "createView",
                            "remarks=\"where people live\""))
                check(text.contains(wanted), wanted, text);
            var difference =
                    liquibase.diff(
                            liquibase.getDatabase(),
                            liquibase.getDatabase(),
                            CompareControl.STANDARD);
            check(difference.areEqual());
        }
        // The generated changelog is applied to the emptied database.
        var folder = Path.of(System.getenv("APPLICATION_WORK"));
        try (var liquibase = open(null)) {
            var generated = new ByteArrayOutputStream();
            liquibase.generateChangeLog(
                    CatalogAndSchema.DEFAULT,
                    new DiffToChangeLog(
                            new DiffOutputControl(
                                    false, false, false, new CompareControl.SchemaComparison[0])),
                    new PrintStream(generated, true, "UTF-8"),
                    Table.class,
                    Column.class,
                    PrimaryKey.class,
                    ForeignKey.class,
                    Index.class,
                    UniqueConstraint.class);
            java.nio.file.Files.write(folder.resolve("generated.xml"), generated.toByteArray());
            liquibase.dropAll();
            check(
                    rows("SHOW FULL TABLES").stream()
                            .noneMatch(line -> !line.toUpperCase().startsWith("DATABASECHANGELOG")),
                    rows("SHOW FULL TABLES"));
        }
        try (var again =
                new Liquibase(
                        "generated.xml",
                        new DirectoryResourceAccessor(folder),
                        DatabaseFactory.getInstance()
                                .findCorrectDatabaseImplementation(
                                        new JdbcConnection(
                                                DriverManager.getConnection(
                                                        URL, USER, PASSWORD))))) {
            again.update(contexts, labels);
            check(
                    rows("SELECT COUNT(*) FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE"
                             + " CONSTRAINT_SCHEMA = DATABASE()")
                            .equals(List.of("2")));
            again.dropAll();
        }
        // Back to a tag and forth again.
        try (var liquibase = open()) {
            liquibase.update("before-changes", contexts, labels);
            check(rows("SHOW COLUMNS FROM person LIKE 'height'").size() == 1);
            liquibase.update(1, contexts, labels);
            check(
                    rows("SHOW COLUMNS FROM person LIKE 'email'")
                            .get(0)
                            .startsWith("email|varchar(200)"),
                    rows("SHOW COLUMNS FROM person LIKE 'email'"));
            liquibase.update(2, contexts, labels);
            liquibase.rollback(2, "");
            check(
                    rows("SHOW TABLES LIKE 'person'").size() == 1
                            && rows("SHOW TABLES LIKE 'city'").isEmpty());
            liquibase.dropAll();
        }
        System.out.println("Liquibase's commands work");
    }
}
