// A library's entities: generated keys of each kind, embedded values, collections, inheritance in
// three ways, versions, JSON, enums, times.
package library;

import jakarta.persistence.*;

import org.hibernate.annotations.ColumnDefault;
import org.hibernate.annotations.CreationTimestamp;
import org.hibernate.annotations.Formula;
import org.hibernate.annotations.GeneratedColumn;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.annotations.NaturalId;
import org.hibernate.annotations.OnDelete;
import org.hibernate.annotations.OnDeleteAction;
import org.hibernate.annotations.UpdateTimestamp;
import org.hibernate.annotations.UuidGenerator;
import org.hibernate.type.SqlTypes;

import java.math.BigDecimal;
import java.time.*;
import java.util.*;

public class Model {
    public enum Genre {
        NOVEL,
        ESSAY,
        OTHER
    }

    @Embeddable
    public static class Address {
        public String street;

        @Column(length = 10)
        public String code;

        public Address() {}

        public Address(String street, String code) {
            this.street = street;
            this.code = code;
        }
    }

    @MappedSuperclass
    public abstract static class Stamped {
        @Version public int version;
        @CreationTimestamp public Instant created;
        @UpdateTimestamp public LocalDateTime changed;
    }

    @Entity(name = "Author")
    @Table(
            name = "author",
            comment = "who writes",
            indexes = @Index(name = "ix_author_name", columnList = "name, born DESC"),
            uniqueConstraints = @UniqueConstraint(name = "uq_mail", columnNames = "mail"))
    @NamedQuery(name = "byName", query = "from Author a where lower(a.name) = lower(:name)")
    public static class Author extends Stamped {
        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        public Long id;

        @Column(nullable = false, length = 80)
        public String name;

        public String mail;
        public LocalDate born;
        @Embedded public Address home = new Address();

        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true)
        @OrderBy("title")
        public List<Book> books = new ArrayList<>();

        @ElementCollection
        @CollectionTable(name = "author_phones")
        @MapKeyColumn(name = "kind", length = 20)
        @Column(name = "number", length = 30)
        public Map<String, String> phones = new HashMap<>();

        @ManyToMany
        @JoinTable(name = "author_award")
        @OnDelete(action = OnDeleteAction.CASCADE)
        public Set<Award> awards = new HashSet<>();

        @Formula("(SELECT COUNT(*) FROM book b WHERE b.author_id = id)")
        public int bookCount;
    }

    @Entity(name = "Book")
    @Table(name = "book", check = @CheckConstraint(name = "book_price", constraint = "price >= 0"))
    public static class Book extends Stamped {
        @Id @UuidGenerator public UUID id;

        @Column(nullable = false, length = 200)
        public String title;

        @ManyToOne(fetch = FetchType.LAZY, optional = false)
        @JoinColumn(foreignKey = @ForeignKey(name = "fk_book_author"))
        public Author author;

        @Enumerated(EnumType.STRING)
        public Genre genre = Genre.NOVEL;

        @Enumerated public Genre second;

        @Column(precision = 10, scale = 2)
        public BigDecimal price;

        @Column(precision = 12, scale = 4)
        @GeneratedColumn("price * 1.2")
        public BigDecimal gross;

        @JdbcTypeCode(SqlTypes.JSON)
        public Map<String, Object> facts;

        @Lob public String text;
        @Lob public byte[] cover;
        public byte[] hash;
        public boolean lent;
        public Boolean rare;
        public Double rating;
        public float weight;
        public short pages;
        public byte shelf;
        public char letter = 'x';
        public LocalTime opens;
        public OffsetDateTime printed;
        public ZonedDateTime zoned;
        public Duration length;
        public Year year;

        @Column(columnDefinition = "varchar(20) default 'none'")
        public String note;

        @ColumnDefault("7")
        public int stars = 7;

        public List<String> tags;
    }

    @Entity(name = "Award")
    @Table(name = "award")
    public static class Award {
        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "award_ids")
        @SequenceGenerator(name = "award_ids", allocationSize = 5)
        public int id;

        @NaturalId
        @Column(length = 40)
        public String name;

        public Award() {}

        public Award(String name) {
            this.name = name;
        }
    }

    @Entity(name = "Account")
    @Table(name = "account")
    @Inheritance(strategy = InheritanceType.JOINED)
    public abstract static class Account {
        @Id
        @GeneratedValue(strategy = GenerationType.TABLE)
        public long id;

        public BigDecimal balance;
    }

    @Entity(name = "Savings")
    @Table(name = "savings")
    public static class Savings extends Account {
        public double rate;
    }

    @Entity(name = "Checking")
    @Table(name = "checking")
    public static class Checking extends Account {
        public int overdraft;
    }

    @Entity(name = "Event")
    @Table(name = "event")
    @Inheritance(strategy = InheritanceType.SINGLE_TABLE)
    @DiscriminatorColumn(name = "kind")
    public abstract static class Event {
        @Id @GeneratedValue public long id;
        public String what;
    }

    @Entity(name = "Loan")
    @DiscriminatorValue("loan")
    public static class Loan extends Event {
        @ManyToOne public Book book;
    }

    @Entity(name = "Visit")
    @DiscriminatorValue("visit")
    public static class Visit extends Event {
        public int minutes;
    }

    @Entity(name = "Shape")
    @Inheritance(strategy = InheritanceType.TABLE_PER_CLASS)
    public abstract static class Shape {
        @Id public int id;
    }

    @Entity(name = "Circle")
    public static class Circle extends Shape {
        public double radius;
    }

    @Entity(name = "Square")
    public static class Square extends Shape {
        public double side;
    }

    @Embeddable
    public record Key(String country, int number) {}

    @Entity(name = "Place")
    @Table(name = "place")
    public static class Place {
        @EmbeddedId public Key id;
        public String name;
        @ManyToOne public Place within;
    }

    static Class<?>[] all() {
        return new Class<?>[] {
            Author.class,
            Book.class,
            Award.class,
            Account.class,
            Savings.class,
            Checking.class,
            Event.class,
            Loan.class,
            Visit.class,
            Shape.class,
            Circle.class,
            Square.class,
            Place.class
        };
    }
}
