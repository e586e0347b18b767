// A company by GORM: AutoMigrate there and back, the migrator's questions, associations, queries, upserts, locks, transactions.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type Settings struct {
	Dark  bool
	Sizes []float64
}

type Company struct {
	ID   uint   `gorm:"comment:the company's number"`
	Name string `gorm:"size:80;uniqueIndex:uq_company,priority:1;not null"`
	City string `gorm:"size:40;uniqueIndex:uq_company,priority:2;default:Wien"`
}

type Person struct {
	gorm.Model
	Name      string `gorm:"size:60;index:ix_name_age,priority:1,length:20"`
	Age       uint8  `gorm:"index:ix_name_age,priority:2,sort:desc;check:age_limit,age < 150"`
	Email     *string
	Born      *time.Time `gorm:"type:date"`
	Salary    float64    `gorm:"type:decimal(12,2)"`
	Active    bool       `gorm:"default:true"`
	Role      string     `gorm:"type:enum('boss','worker');default:'worker'"`
	Settings  Settings   `gorm:"serializer:json;type:json"`
	Photo     []byte
	Rate      sql.NullFloat64
	Big       uint64
	Upper     string `gorm:"->;type:varchar(60) GENERATED ALWAYS AS (upper(name)) STORED"`
	CompanyID *uint
	Company   *Company `gorm:"constraint:OnUpdate:CASCADE,OnDelete:SET NULL"`
	BossID    *uint
	Boss      *Person
	Card      Card      `gorm:"constraint:OnDelete:CASCADE"`
	Phones    []Phone   `gorm:"constraint:OnDelete:CASCADE"`
	Skills    []Skill   `gorm:"many2many:person_skills"`
	Address   Address   `gorm:"embedded;embeddedPrefix:home_"`
	Notes     []Note    `gorm:"polymorphic:Owner"`
	Seen      time.Time `gorm:"precision:6;default:CURRENT_TIMESTAMP(6)"`
	Version   int32
}

type Address struct {
	Street string `gorm:"size:100"`
	Code   string `gorm:"type:char(6)"`
}

type Card struct {
	ID       uint
	Number   string `gorm:"size:20;unique"`
	PersonID uint
}

type Phone struct {
	ID       uint
	Number   string `gorm:"size:20"`
	PersonID uint
}

type Skill struct {
	Code string `gorm:"primaryKey;size:10"`
}

type Note struct {
	ID        uint
	Text      string `gorm:"type:text"`
	OwnerID   uint
	OwnerType string `gorm:"size:30"`
}

func check(right bool, what ...any) {
	if !right {
		panic(fmt.Sprintln(what...))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func code(err error) uint16 {
	var mysqlError *driver.MySQLError
	if errors.As(err, &mysqlError) {
		return mysqlError.Number
	}
	return 0
}

// statements counts what a function sends.
type statements struct {
	logger.Interface
	sent []string
}

func (s *statements) Trace(_ context.Context, _ time.Time, sql func() (string, int64), _ error) {
	text, _ := sql()
	s.sent = append(s.sent, text)
}

func (s *statements) LogMode(logger.LogLevel) logger.Interface { return s }

func migrate(db *gorm.DB) {
	models := []any{&Company{}, &Person{}, &Card{}, &Phone{}, &Skill{}, &Note{}}
	must(db.AutoMigrate(models...))
	// A second migration finds everything as it is.
	log := &statements{Interface: logger.Discard}
	must(db.Session(&gorm.Session{Logger: log}).AutoMigrate(models...))
	for _, sql := range log.sent {
		check(!strings.HasPrefix(sql, "ALTER") && !strings.HasPrefix(sql, "CREATE"), sql)
	}
	m := db.Migrator()
	check(m.HasTable(&Person{}) && m.HasTable("person_skills") && !m.HasTable("nothing"))
	check(m.HasColumn(&Person{}, "salary") && !m.HasColumn(&Person{}, "wage"))
	check(m.HasIndex(&Person{}, "ix_name_age") && m.HasConstraint(&Person{}, "age_limit") && m.HasConstraint(&Person{}, "Company"))
	types, err := m.ColumnTypes(&Person{})
	must(err)
	found := map[string]gorm.ColumnType{}
	for _, column := range types {
		found[column.Name()] = column
	}
	kind := func(name, want string) {
		got, _ := found[name].ColumnType()
		check(got == want, name, got)
	}
	kind("id", "bigint unsigned")
	kind("salary", "decimal(12,2)")
	kind("role", "enum('boss','worker')")
	kind("settings", "json")
	kind("photo", "longblob")
	kind("age", "tinyint unsigned")
	precision, scale, _ := found["salary"].DecimalSize()
	check(precision == 12 && scale == 2, precision, scale)
	value, ok := found["role"].DefaultValue()
	check(ok && value == "worker", value)
	primary, _ := found["id"].PrimaryKey()
	auto, _ := found["id"].AutoIncrement()
	nullable, _ := found["deleted_at"].Nullable()
	length, _ := found["name"].Length()
	check(primary && auto && nullable && length == 60)
	companies, err := m.ColumnTypes(&Company{})
	must(err)
	comment, _ := companies[0].Comment()
	check(comment == "the company's number", comment)
	indexes, err := m.GetIndexes(&Person{})
	must(err)
	names := map[string][]string{}
	for _, index := range indexes {
		names[index.Name()] = index.Columns()
	}
	check(reflect.DeepEqual(names["ix_name_age"], []string{"name", "age"}), names)
	tables, err := m.GetTables()
	must(err)
	check(len(tables) == 7, tables)

	// Single steps.
	must(m.AddColumn(&extended{}, "Extra"))
	must(m.AlterColumn(&changed{}, "Extra"))
	must(m.RenameColumn(&extended{}, "extra", "more"))
	check(m.HasColumn("people", "more"))
	must(m.DropColumn("people", "more"))
	must(m.DropIndex(&Person{}, "ix_name_age"))
	must(m.CreateIndex(&Person{}, "ix_name_age"))
	must(m.RenameIndex(&Person{}, "ix_name_age", "ix_other"))
	must(m.RenameIndex(&Person{}, "ix_other", "ix_name_age"))
	must(m.DropConstraint(&Person{}, "age_limit"))
	must(m.CreateConstraint(&Person{}, "age_limit"))
	must(m.DropConstraint(&Person{}, "Company"))
	must(m.CreateConstraint(&Person{}, "Company"))
	must(m.RenameTable("notes", "remarks"))
	must(m.RenameTable("remarks", "notes"))
	must(m.CreateView("adults", gorm.ViewOption{Replace: true, Query: db.Model(&Person{}).Select("id", "name").Where("age >= ?", 18)}))
	must(m.DropView("adults"))
}

type extended struct {
	ID    uint
	Extra string `gorm:"size:20;default:'x'"`
}

func (extended) TableName() string { return "people" }

type changed struct {
	ID    uint
	Extra int64 `gorm:"default:5;comment:now a number"`
}

func (changed) TableName() string { return "people" }

func pointer[T any](value T) *T { return &value }

func use(db *gorm.DB) {
	born := time.Date(1815, 12, 10, 0, 0, 0, 0, time.UTC)
	ada := Person{
		Name: "Ada 'Ä' \\ 🎉", Age: 36, Email: pointer("ada@example.org"), Born: &born, Salary: 1234.56, Role: "boss", Settings: Settings{true, []float64{1, 2.5}},
		Photo: []byte{0, 39, 92, 255}, Rate: sql.NullFloat64{Float64: 1.0 / 3, Valid: true}, Big: 1<<64 - 1, Company: &Company{Name: "Engines"}, Card: Card{Number: "4711"},
		Phones: []Phone{{Number: "1"}, {Number: "2"}}, Skills: []Skill{{"math"}, {"poetry"}}, Address: Address{"Street 1", "1010"}, Notes: []Note{{Text: "first"}},
	}
	must(db.Create(&ada).Error)
	check(ada.ID > 0 && ada.Company.City == "Wien", ada.Company)
	people := make([]Person, 60)
	for n := range people {
		people[n] = Person{Name: fmt.Sprintf("person %d", n), Age: uint8(n), Salary: float64(n) * 10, BossID: &ada.ID, CompanyID: ada.CompanyID, Card: Card{Number: fmt.Sprint(n)}}
	}
	must(db.CreateInBatches(people, 25).Error)
	var read Person
	must(db.Preload(clause.Associations).Preload("Notes").First(&read, ada.ID).Error)
	check(read.Name == ada.Name && read.Born.Equal(born) && read.Salary == 1234.56 && reflect.DeepEqual(read.Settings, ada.Settings), read)
	check(reflect.DeepEqual(read.Photo, ada.Photo) && read.Rate.Float64 == 1.0/3 && read.Big == 1<<64-1 && read.Active && read.Upper == "ADA 'Ä' \\ 🎉", read)
	check(len(read.Phones) == 2 && len(read.Skills) == 2 && read.Card.Number == "4711" && read.Company.Name == "Engines" && read.Address.Code == "1010" && len(read.Notes) == 1)
	check(time.Since(read.Seen).Abs() < time.Minute && time.Since(read.CreatedAt).Abs() < time.Minute, read.Seen, read.CreatedAt)

	var count int64
	counts := func(want int64, query *gorm.DB) {
		must(query.Count(&count).Error)
		check(count == want, count, want)
	}
	model := func() *gorm.DB { return db.Model(&Person{}) }
	counts(11, model().Where("name LIKE ?", "person 1%"))
	counts(3, model().Where("age IN ?", []int{1, 2, 3}))
	counts(2, model().Where(&Person{Name: "person 5"}).Or("age = ?", 7))
	counts(60, model().Not("role = ?", "boss"))
	counts(1, model().Where("JSON_EXTRACT(settings, '$.Dark') = true"))
	counts(60, model().Joins("Boss").Where("Boss.name LIKE ?", "Ada%"))
	counts(1, model().Joins("JOIN person_skills s ON s.person_id = people.id").Where("s.skill_code = ?", "math"))
	counts(30, model().Where("salary > (?)", db.Model(&Person{}).Select("AVG(salary)").Where("role = ?", "worker").Where("age < ?", 61)).Where("age > 30"))
	counts(42, model().Where("EXISTS (?)", db.Table("cards").Select("1").Where("cards.person_id = people.id AND cards.number < ?", "47")))
	var groups []struct {
		Role string
		N    int
		Sum  float64
	}
	must(model().Select("role, COUNT(*) AS n, SUM(salary) AS sum").Group("role").Having("COUNT(*) > ?", 1).Scan(&groups).Error)
	check(len(groups) == 1 && groups[0].N == 60 && groups[0].Sum == 17700, groups)
	var names []string
	must(model().Order("salary DESC, name").Offset(1).Limit(2).Pluck("name", &names).Error)
	check(reflect.DeepEqual(names, []string{"person 59", "person 58"}), names)
	var batches int
	must(db.FindInBatches(&[]Person{}, 20, func(tx *gorm.DB, _ int) error { batches++; return nil }).Error)
	check(batches == 4, batches)
	rows, err := model().Where("age < ?", 5).Rows()
	must(err)
	seen := 0
	for rows.Next() {
		var one Person
		must(db.ScanRows(rows, &one))
		seen++
	}
	must(rows.Close())
	check(seen == 5, seen)
	must(db.Raw("SELECT name FROM people WHERE age = @age AND name = @name", sql.Named("age", 7), sql.Named("name", "person 7")).Scan(&names).Error)
	check(len(names) == 1)

	must(db.Model(&ada).Association("Skills").Append(&Skill{"chess"}))
	must(db.Model(&ada).Association("Skills").Delete(&Skill{"math"}))
	check(db.Model(&ada).Association("Skills").Count() == 2)
	must(db.Model(&ada).Association("Phones").Replace([]Phone{{Number: "3"}}))
	must(db.Model(&ada).Association("Skills").Clear())

	must(db.Model(&ada).Updates(map[string]any{"salary": gorm.Expr("salary * ? + ?", 2, 1), "version": gorm.Expr("version + 1")}).Error)
	must(db.First(&read, ada.ID).Error)
	check(read.Salary == 2470.12 && read.Version == 1, read.Salary)
	check(model().Where("age < ?", 10).Update("active", false).RowsAffected == 10)
	check(errors.Is(db.Model(&Person{}).Update("age", 1).Error, gorm.ErrMissingWhereClause))
	must(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"city"})}).Create(&Company{ID: *ada.CompanyID, Name: "Engines", City: "Graz"}).Error)
	must(db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Company{ID: *ada.CompanyID, Name: "No"}).Error)
	must(db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&[]Company{{ID: 50, Name: "New"}, {ID: *ada.CompanyID, Name: "Engines", City: "Linz"}}).Error)
	var company Company
	must(db.First(&company, ada.CompanyID).Error)
	check(company.City == "Linz", company)
	var made Company
	must(db.Where(Company{Name: "Found"}).Attrs(Company{City: "Bregenz"}).FirstOrCreate(&made).Error)
	check(made.ID > 51 || made.City == "Bregenz", made)
	must(db.Save(&Company{ID: 51, Name: "Saved"}).Error)

	check(code(db.Create(&Company{Name: "Engines", City: "Linz"}).Error) == 1062)
	check(code(db.Create(&Person{Name: "old", Age: 200}).Error) == 3819)
	check(code(db.Create(&Phone{Number: "9", PersonID: 10000}).Error) == 1452)
	check(code(db.Create(&Person{Name: strings.Repeat("x", 61)}).Error) == 1406)
	check(code(db.Exec("SELECT nothing FROM people").Error) == 1054)
	translated := db.Session(&gorm.Session{NewDB: true})
	translated.Config.TranslateError = true
	check(errors.Is(translated.Create(&Company{Name: "Engines", City: "Linz"}).Error, gorm.ErrDuplicatedKey))
	check(errors.Is(translated.Create(&Phone{Number: "9", PersonID: 10000}).Error, gorm.ErrForeignKeyViolated))
	translated.Config.TranslateError = false

	must(db.Delete(&people[0]).Error)
	check(errors.Is(db.First(&Person{}, people[0].ID).Error, gorm.ErrRecordNotFound))
	must(db.Unscoped().First(&Person{}, people[0].ID).Error)
	check(db.Unscoped().Where("boss_id = ?", ada.ID).Delete(&Person{}).RowsAffected == 60)
	counts(1, db.Model(&Card{}))
}

func transactions(db *gorm.DB) {
	must(db.Create(&Person{Name: "counter"}).Error)
	err := db.Transaction(func(tx *gorm.DB) error {
		must(tx.Create(&Company{Name: "lost"}).Error)
		return errors.New("back")
	})
	check(err.Error() == "back")
	must(db.Transaction(func(tx *gorm.DB) error {
		must(tx.Create(&Company{Name: "outer"}).Error)
		_ = tx.Transaction(func(inner *gorm.DB) error {
			must(inner.Create(&Company{Name: "inner"}).Error)
			return errors.New("only this")
		})
		must(tx.SavePoint("here").Error)
		must(tx.Create(&Company{Name: "undone"}).Error)
		return tx.RollbackTo("here").Error
	}))
	var names []string
	must(db.Model(&Company{}).Where("name IN ?", []string{"lost", "outer", "inner", "undone"}).Pluck("name", &names).Error)
	check(reflect.DeepEqual(names, []string{"outer"}), names)
	var group sync.WaitGroup
	for n := 0; n < 8; n++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for k := 0; k < 10; k++ {
				must(db.Transaction(func(tx *gorm.DB) error {
					var person Person
					must(tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&person, "name = ?", "counter").Error)
					return tx.Model(&person).UpdateColumn("version", person.Version+1).Error
				}))
			}
		}()
	}
	group.Wait()
	must(db.Transaction(func(tx *gorm.DB) error {
		var person Person
		must(tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&person, "name = ?", "counter").Error)
		check(person.Version == 80, person.Version)
		check(code(db.Clauses(clause.Locking{Strength: "SHARE", Options: "NOWAIT"}).First(&Person{}, person.ID).Error) == 3572)
		check(errors.Is(db.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).First(&Person{}, person.ID).Error, gorm.ErrRecordNotFound))
		return nil
	}, &sql.TxOptions{Isolation: sql.LevelReadCommitted}))
}

func main() {
	for _, prepared := range []bool{false, true} {
		dsn := fmt.Sprintf("%s:%s@tcp(%s:%s)/%s?charset=utf8mb4&parseTime=True&loc=UTC&time_zone=%%27%%2B00:00%%27", os.Getenv("APPLICATION_USER"), os.Getenv("APPLICATION_PASSWORD"),
			os.Getenv("RAUK_HOST"), os.Getenv("RAUK_PORT"), os.Getenv("APPLICATION_DATABASE"))
		db, err := gorm.Open(mysql.Open(dsn), &gorm.Config{Logger: logger.Discard, PrepareStmt: prepared})
		must(err)
		for _, step := range []func(*gorm.DB){migrate, use, transactions} {
			step(db)
		}
		must(db.Migrator().DropTable(&Note{}, "person_skills", &Skill{}, &Phone{}, &Card{}, &Person{}, &Company{}))
		pool, err := db.DB()
		must(err)
		must(pool.Close())
	}
	fmt.Println("the company works with GORM")
}
