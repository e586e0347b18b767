// Runs the library: the schema is generated, found valid, updated and dropped by Hibernate;
// entities, queries, locks, batches.
package library;

import jakarta.persistence.LockModeType;
import jakarta.persistence.LockTimeoutException;
import jakarta.persistence.OptimisticLockException;
import jakarta.persistence.PessimisticLockException;

import library.Model.*;

import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.hibernate.exception.ConstraintViolationException;
import org.hibernate.exception.DataException;
import org.hibernate.exception.SQLGrammarException;

import java.math.BigDecimal;
import java.sql.DriverManager;
import java.time.*;
import java.util.*;
import java.util.function.Consumer;
import java.util.function.Function;

public class Main {
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

    static SessionFactory open(String schema, Consumer<Configuration> more) {
        var configuration = new Configuration().addAnnotatedClasses(Model.all());
        configuration
                .setProperty("hibernate.connection.url", URL)
                .setProperty("hibernate.connection.username", USER)
                .setProperty("hibernate.connection.password", PASSWORD)
                .setProperty("hibernate.hbm2ddl.auto", schema)
                .setProperty("hibernate.jdbc.batch_size", "20")
                .setProperty("hibernate.order_inserts", "true")
                .setProperty("hibernate.connection.pool_size", "6")
                .setProperty(
                        "hibernate.hbm2ddl.halt_on_error",
                        schema.contains("drop") ? "false" : "true")
                .setProperty("hibernate.type.json_format_mapper", Json.class.getName());
        more.accept(configuration);
        return configuration.buildSessionFactory();
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

    static <E extends Throwable> E refused(Class<E> kind, Runnable action) {
        try {
            action.run();
        } catch (Throwable error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause())
                if (kind.isInstance(cause)) return kind.cast(cause);
            throw new AssertionError("not " + kind, error);
        }
        throw new AssertionError("no " + kind);
    }

    static void schema() throws Exception {
        open("create-drop", c -> {}).close();
        check(rows("SHOW TABLES").isEmpty(), rows("SHOW TABLES"));
        open("create-only", c -> {}).close();
        open("validate", c -> {}).close();
        // What the schema tool reads of the tables makes it change nothing.
        var before =
                rows(
                        "SELECT table_name, column_name, column_type, is_nullable, column_default"
                            + " FROM information_schema.columns WHERE table_schema = DATABASE()"
                            + " ORDER BY 1, ordinal_position");
        open("update", c -> {}).close();
        check(
                before.equals(
                        rows(
                                "SELECT table_name, column_name, column_type, is_nullable,"
                                    + " column_default FROM information_schema.columns WHERE"
                                    + " table_schema = DATABASE() ORDER BY 1, ordinal_position")));
        check(
                before.stream()
                        .anyMatch(
                                line ->
                                        line.startsWith(
                                                "book|genre|enum('ESSAY','NOVEL','OTHER')|YES")),
                before);
        // Columns and tables that are missing are added.
        try (var db = DriverManager.getConnection(URL, USER, PASSWORD);
                var statement = db.createStatement()) {
            statement.execute("ALTER TABLE book DROP COLUMN note, DROP COLUMN facts");
            statement.execute("DROP TABLE author_phones");
        }
        refused(
                org.hibernate.tool.schema.spi.SchemaManagementException.class,
                () -> open("validate", c -> {}));
        open("update", c -> {}).close();
        open("validate", c -> {}).close();
    }

    static void use(SessionFactory factory, boolean committed) {
        var ids = new ArrayList<UUID>();
        factory.inTransaction(
                session -> {
                    var ada = new Author();
                    ada.name = "Ada Äther 🎉";
                    ada.mail = "ada@example.org";
                    ada.born = LocalDate.of(1815, 12, 10);
                    ada.home = new Address("it's \"here\" \\", "1010");
                    ada.phones.put("home", "1");
                    ada.phones.put("work", "2");
                    for (var name : List.of("gold", "silver")) {
                        var award = new Award(name);
                        session.persist(award);
                        ada.awards.add(award);
                    }
                    for (int n = 0; n < 50; n++) {
                        var book = new Book();
                        book.title = "Title " + (char) ('A' + n % 26) + " " + n;
                        book.author = ada;
                        book.genre = Genre.values()[n % 3];
                        book.second = n % 2 == 0 ? Genre.ESSAY : null;
                        book.price = BigDecimal.valueOf(n * 25L, 2);
                        book.facts = Map.of("pages", n, "deep", Map.of("list", List.of("x", "y")));
                        book.text = "ä".repeat(n * 100);
                        book.cover = new byte[] {0, 39, 92, (byte) n};
                        book.hash = new byte[] {(byte) n};
                        book.rating = n / 3.0;
                        book.weight = 1.5f;
                        book.pages = (short) n;
                        book.opens = LocalTime.of(8, 30, 15);
                        book.printed =
                                OffsetDateTime.of(
                                        2024, 2, 29, 12, 0, 0, 123456000, ZoneOffset.ofHours(2));
                        book.zoned = ZonedDateTime.of(2024, 7, 1, 0, 0, 0, 0, ZoneId.of("UTC"));
                        book.length = Duration.ofHours(n);
                        book.year = Year.of(1990 + n);
                        book.tags = List.of("one", "two's");
                        ada.books.add(book);
                    }
                    session.persist(ada);
                    session.flush();
                    ids.add(ada.books.get(7).id);
                    check(
                            ada.books.get(7).gross.compareTo(new BigDecimal("2.1")) == 0,
                            ada.books.get(7).gross);
                    for (int n = 0; n < 7; n++) {
                        var loan = new Loan();
                        loan.book = ada.books.get(n);
                        loan.what = "loan " + n;
                        session.persist(loan);
                        var visit = new Visit();
                        visit.minutes = n;
                        session.persist(visit);
                        Account account = n % 2 == 0 ? new Savings() : new Checking();
                        account.balance = new BigDecimal(n);
                        session.persist(account);
                        Shape shape = n % 2 == 0 ? new Circle() : new Square();
                        shape.id = n;
                        session.persist(shape);
                    }
                    var country = new Place();
                    country.id = new Key("AT", 0);
                    country.name = "Austria";
                    var city = new Place();
                    city.id = new Key("AT", 1);
                    city.within = country;
                    session.persist(country);
                    session.persist(city);
                });
        factory.inTransaction(
                session -> {
                    var book = session.find(Book.class, ids.get(0));
                    check(
                            book.genre == Genre.ESSAY
                                    && book.second == null
                                    && book.price.equals(new BigDecimal("1.75")),
                            book.genre,
                            book.price);
                    check(
                            ((Number) book.facts.get("pages")).intValue() == 7
                                    && book.text.length() == 700
                                    && Arrays.equals(book.cover, new byte[] {0, 39, 92, 7}),
                            book.facts);
                    check(
                            book.opens.equals(LocalTime.of(8, 30, 15))
                                    && book.printed
                                            .toInstant()
                                            .equals(Instant.parse("2024-02-29T10:00:00.123456Z")),
                            book.opens,
                            book.printed);
                    check(
                            book.length.equals(Duration.ofHours(7))
                                    && book.year.equals(Year.of(1997))
                                    && book.tags.equals(List.of("one", "two's")),
                            book.length,
                            book.tags);
                    var author = org.hibernate.Hibernate.unproxy(book.author, Author.class);
                    check(
                            author.name.equals("Ada Äther 🎉")
                                    && author.phones.equals(Map.of("home", "1", "work", "2"))
                                    && author.home.street.equals("it's \"here\" \\"));
                    check(author.bookCount == 50 && author.awards.size() == 2);
                    check(session.byNaturalId(Award.class).using("name", "gold").load() != null);
                    check(
                            org.hibernate.Hibernate.unproxy(
                                            session.find(Place.class, new Key("AT", 1)).within,
                                            Place.class)
                                    .name
                                    .equals("Austria"));
                });
        Function<String, List<Object>> query =
                text ->
                        factory.fromSession(
                                session ->
                                        session.createSelectionQuery(text, Object.class)
                                                .getResultList());
        check(
                query.apply(
                                "select count(*) from Book b where b.title like 'Title A%' and"
                                    + " b.author.home.code = '1010'")
                        .equals(List.of(2L)));
        check(
                query.apply(
                                        "select b.genre, count(b), sum(b.price) from Book b group"
                                            + " by b.genre having count(b) > 16 order by b.genre")
                                .size()
                        == 2);
        check(
                query.apply(
                                "select b.title from Book b order by b.price desc, b.title limit 2"
                                    + " offset 1")
                        .equals(List.of("Title W 48", "Title V 47")),
                query.apply(
                        "select b.title from Book b order by b.price desc, b.title limit 2"
                            + " offset 1"));
        check(
                query.apply(
                                        "select extract(year from b.printed), year(current date) -"
                                            + " year(b.author.born) > 100, cast(b.price as"
                                            + " Integer), b.title || '!' from Book b where b.pages"
                                            + " = 3")
                                .size()
                        == 1);
        check(
                query.apply("select count(*) from Event").equals(List.of(14L))
                        && query.apply("select count(*) from Loan l where l.book.pages < 3")
                                .equals(List.of(3L)));
        check(
                query.apply("select sum(a.balance) from Account a where type(a) = Savings")
                        .get(0)
                        .toString()
                        .startsWith("12"));
        check(
                query.apply("from Shape s order by s.id").size() == 7
                        && query.apply("from Account a order by a.id").get(1) instanceof Checking);
        check(
                query.apply(
                                        "select b.title from Book b where b.price = (select"
                                            + " max(c.price) from Book c where c.genre = b.genre)"
                                            + " order by b.title")
                                .size()
                        == 3);
        check(
                query.apply(
                                        "select a.name from Author a where exists (select 1 from"
                                            + " a.books b where b.rating > 16) and size(a.awards) ="
                                            + " 2 and 'home' in indices(a.phones)")
                                .size()
                        == 1);
        check(
                query.apply(
                                        "select b.title, rank() over (partition by b.genre order by"
                                            + " b.price desc) from Book b order by 2, 1")
                                .size()
                        == 50);
        check(
                query.apply(
                                        "with recent as (select b.title as title, b.year as year"
                                            + " from Book b where b.pages > 40) select r.title from"
                                            + " recent r order by r.title")
                                .size()
                        == 9);
        check(
                query.apply(
                                        "select b.title from Book b where b.pages < 2 union select"
                                            + " a.name from Author a")
                                .size()
                        == 3);
        check(
                query.apply(
                                "select listagg(b.title, ';') within group (order by b.pages) from"
                                    + " Book b where b.pages < 3")
                        .equals(List.of("Title A 0;Title B 1;Title C 2")));
        check(
                query.apply(
                                        "select coalesce(b.genre, b.genre), nullif(b.pages, 3),"
                                            + " case when b.lent then 1 else 0 end, abs(-b.pages),"
                                            + " locate('t', b.title), substring(b.title, 1, 3),"
                                            + " trim(b.title), replace(b.title, 'T', 't'),"
                                            + " b.created + 1 day from Book b where b.pages = 3")
                                .size()
                        == 1);
        factory.inSession(
                session -> {
                    check(
                            session.createNamedQuery("byName", Author.class)
                                            .setParameter("name", "ADA äther 🎉")
                                            .getResultList()
                                            .size()
                                    == 1);
                    var fetched =
                            session.createSelectionQuery(
                                            "select distinct a from Author a join fetch a.books b"
                                                + " where b.pages >= 0",
                                            Author.class)
                                    .getSingleResult();
                    check(fetched.books.size() == 50);
                    var criteria = session.getCriteriaBuilder().createQuery(Book.class);
                    var root = criteria.from(Book.class);
                    criteria.where(
                                    session.getCriteriaBuilder()
                                            .between(root.get("pages"), (short) 10, (short) 19))
                            .orderBy(session.getCriteriaBuilder().asc(root.get("pages")));
                    check(
                            session.createSelectionQuery(criteria)
                                            .setFirstResult(2)
                                            .setMaxResults(3)
                                            .getResultList()
                                            .get(0)
                                            .pages
                                    == 12);
                    check(
                            session.createNativeQuery(
                                                    "SELECT * FROM book WHERE pages BETWEEN :low"
                                                        + " AND :high",
                                                    Book.class)
                                            .setParameter("low", 1)
                                            .setParameter("high", 4)
                                            .getResultList()
                                            .size()
                                    == 4);
                    try (var scroll =
                            session.createSelectionQuery("from Book b order by b.pages", Book.class)
                                    .setFetchSize(Integer.MIN_VALUE)
                                    .scroll(org.hibernate.ScrollMode.FORWARD_ONLY)) {
                        int seen = 0;
                        while (scroll.next()) check(scroll.get().pages == seen++);
                        check(seen == 50);
                    }
                });
        factory.inTransaction(
                session -> {
                    check(
                            session.createMutationQuery(
                                                    "update Book b set b.price = b.price * 2,"
                                                        + " b.lent = true where b.genre = OTHER")
                                            .executeUpdate()
                                    == 16);
                    check(
                            session.createMutationQuery(
                                                    "update versioned Author a set a.mail ="
                                                        + " concat(a.mail, '!') where a.id in"
                                                        + " (select b.author.id from Book b where"
                                                        + " b.pages = 1)")
                                            .executeUpdate()
                                    == 1);
                    check(
                            session.createMutationQuery(
                                                    "update Account a set a.balance = a.balance +"
                                                        + " 100 where a.balance > 3")
                                            .executeUpdate()
                                    == 3);
                    check(
                            session.createMutationQuery(
                                                    "delete from Savings s where s.balance > 100")
                                            .executeUpdate()
                                    == 2);
                    check(
                            session.createMutationQuery(
                                                    "insert into Circle (id, radius) select s.id +"
                                                        + " 100, s.side from Square s")
                                            .executeUpdate()
                                    == 3);
                    check(
                            session.createMutationQuery(
                                                    "insert into Square (id, side) values (1, 5) on"
                                                        + " conflict do update set side ="
                                                        + " excluded.side + 1")
                                            .executeUpdate()
                                    >= 1);
                });
        check(
                query.apply("select s.side from Square s where s.id = 1").equals(List.of(6.0)),
                query.apply("select s.side from Square s where s.id = 1"));

        // Errors have their class and constraint.
        check(
                refused(
                                ConstraintViolationException.class,
                                () ->
                                        factory.inTransaction(
                                                session -> {
                                                    var author = new Author();
                                                    author.name = "x";
                                                    author.mail = "ada@example.org!";
                                                    session.persist(author);
                                                }))
                        .getConstraintName()
                        .endsWith("uq_mail"));
        refused(
                ConstraintViolationException.class,
                () ->
                        factory.inTransaction(
                                s ->
                                        s.createNativeMutationQuery("UPDATE book SET price = -1")
                                                .executeUpdate()));
        var foreign =
                refused(
                        ConstraintViolationException.class,
                        () ->
                                factory.inTransaction(
                                        s ->
                                                s.createNativeMutationQuery(
                                                                "UPDATE book SET author_id ="
                                                                    + " 999999")
                                                        .executeUpdate()));
        check("fk_book_author".equals(foreign.getConstraintName()), foreign.getConstraintName());
        refused(
                DataException.class,
                () ->
                        factory.inTransaction(
                                s ->
                                        s.createNativeMutationQuery(
                                                        "UPDATE author SET name = REPEAT('x', 100)")
                                                .executeUpdate()));
        refused(
                SQLGrammarException.class,
                () ->
                        factory.inTransaction(
                                s ->
                                        s.createNativeQuery(
                                                        "SELECT nothing FROM author", Object.class)
                                                .getResultList()));

        // Two sessions: versions, and row locks with NOWAIT and SKIP LOCKED.
        // At REPEATABLE READ the row that changed since the snapshot is error 1020, before
        // Hibernate counts rows.
        Class<? extends RuntimeException> stale =
                committed
                        ? OptimisticLockException.class
                        : org.hibernate.exception.GenericJDBCException.class;
        refused(
                stale,
                () ->
                        factory.inTransaction(
                                one -> {
                                    var mine = one.find(Book.class, ids.get(0));
                                    factory.inTransaction(
                                            other ->
                                                    other.find(Book.class, ids.get(0)).title =
                                                            "theirs");
                                    mine.title = "mine";
                                    one.flush();
                                }));
        factory.inTransaction(
                one -> {
                    one.find(Book.class, ids.get(0), LockModeType.PESSIMISTIC_WRITE);
                    var blocked =
                            refused(
                                    jakarta.persistence.PersistenceException.class,
                                    () ->
                                            factory.inTransaction(
                                                    other ->
                                                            other.find(
                                                                    Book.class,
                                                                    ids.get(0),
                                                                    LockModeType.PESSIMISTIC_WRITE,
                                                                    Map.of(
                                                                            "jakarta.persistence.lock.timeout",
                                                                            0))));
                    check(
                            blocked instanceof LockTimeoutException
                                    || blocked instanceof PessimisticLockException,
                            blocked);
                    factory.inTransaction(
                            other ->
                                    check(
                                            other.createSelectionQuery(
                                                                    "from Book b where b.pages in"
                                                                        + " (7, 8)",
                                                                    Book.class)
                                                            .setHibernateLockMode(
                                                                    org.hibernate.LockMode
                                                                            .UPGRADE_SKIPLOCKED)
                                                            .getResultList()
                                                            .size()
                                                    == 1));
                });
        var threads = new ArrayList<Thread>();
        for (int n = 0; n < 4; n++)
            threads.add(
                    new Thread(
                            () -> {
                                for (int k = 0; k < 10; k++)
                                    factory.inTransaction(
                                            session ->
                                                    session.createSelectionQuery(
                                                                    "from Book b where b.pages = 9",
                                                                    Book.class)
                                                            .setLockMode(
                                                                    LockModeType.PESSIMISTIC_WRITE)
                                                            .getSingleResult()
                                                            .stars++);
                            }));
        threads.forEach(Thread::start);
        for (var thread : threads)
            try {
                thread.join();
            } catch (InterruptedException error) {
                throw new AssertionError(error);
            }
        check(
                query.apply("select b.stars from Book b where b.pages = 9").equals(List.of(47)),
                query.apply("select b.stars from Book b where b.pages = 9"));
        factory.inTransaction(
                session -> {
                    session.createMutationQuery("delete from Loan").executeUpdate();
                    session.remove(
                            session.createSelectionQuery("from Author", Author.class)
                                    .getSingleResult());
                });
        check(query.apply("select count(*) from Book").equals(List.of(0L)));
    }

    public static void main(String[] arguments) throws Exception {
        java.util.logging.Logger.getLogger("").setLevel(java.util.logging.Level.OFF);
        schema();
        try (var factory = open("validate", c -> {})) {
            use(factory, false);
        }
        open("drop", c -> {}).close();
        check(rows("SHOW TABLES").isEmpty(), rows("SHOW TABLES"));
        try (var factory =
                open(
                        "create-drop",
                        c ->
                                c.setProperty("hibernate.connection.isolation", "2")
                                        .setProperty(
                                                "hibernate.globally_quoted_identifiers", "true")
                                        .setProperty(
                                                "hibernate.globally_quoted_identifiers_skip_column_definitions",
                                                "true"))) {
            use(factory, true);
        }
        check(rows("SHOW TABLES").isEmpty(), rows("SHOW TABLES"));
        System.out.println(
                "the library works with Hibernate " + org.hibernate.Version.getVersionString());
    }
}
