// go-sql-driver against a running server.
//
// Host, port, user and password come from RAUK_HOST, RAUK_PORT, RAUK_USER, RAUK_PASSWORD; RAUK_REFERENCE=mariadb leaves out what MariaDB does not
// have. Ends with 0 when all went well; prints one line a test.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

const database = "driver_go"

func env(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}

var (
	address  = env("RAUK_HOST", "127.0.0.1") + ":" + env("RAUK_PORT", "3306")
	user     = env("RAUK_USER", "root")
	password = env("RAUK_PASSWORD", "")
	mariadb  = os.Getenv("RAUK_REFERENCE") == "mariadb"
)

func open(change func(*mysql.Config)) *sql.DB {
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User, config.Passwd, config.DBName = "tcp", address, user, password, database
	config.ParseTime = true
	config.MaxAllowedPacket = 64 << 20
	if change != nil {
		change(config)
	}
	connector, err := mysql.NewConnector(config)
	check(err)
	return sql.OpenDB(connector)
}

type failed string

func check(err error) {
	if err != nil {
		panic(failed(err.Error()))
	}
}

func equal(got, wanted any) {
	if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", wanted) {
		panic(failed(fmt.Sprintf("got %#v, wanted %#v", got, wanted)))
	}
}

func refused(err error, number uint16) {
	var e *mysql.MySQLError
	if !errors.As(err, &e) || e.Number != number {
		panic(failed(fmt.Sprintf("got %v, wanted error %d", err, number)))
	}
}

func exec(db *sql.DB, statement string, arguments ...any) sql.Result {
	result, err := db.Exec(statement, arguments...)
	check(err)
	return result
}

type row struct {
	Tiny                  int8
	TinyU                 uint8
	Small                 int16
	Int                   int32
	IntU                  uint32
	Big                   int64
	BigU                  uint64
	Decimal               string
	Float                 float32
	Double                float64
	Char, Varchar, Text   string
	Varbinary, Blob       []byte
	Date, Datetime, Stamp time.Time
	Time                  string
	Null                  sql.NullString
}

var wanted = row{
	-128, 255, -32768, -2147483648, 4294967295, -9223372036854775808, 18446744073709551615, "-1234567890.1230", 1.5, -2.25e100,
	"aß€", "it's 😀 \\ \" \n", strings.Repeat("t", 70000), []byte{0, 255, 39, 92}, bytes.Repeat([]byte{1, 0, 254}, 9999),
	time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), time.Date(2024, 2, 29, 23, 59, 58, 123456000, time.UTC), time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC),
	"-26:03:04.500000", sql.NullString{},
}

// Every type, written and read in the text and in the binary protocol.
func types() {
	for _, interpolate := range []bool{false, true} {
		db := open(func(c *mysql.Config) { c.InterpolateParams = interpolate })
		defer db.Close()
		exec(db, "DROP TABLE IF EXISTS types")
		exec(db, `CREATE TABLE types (id INT PRIMARY KEY, c1 TINYINT, c2 TINYINT UNSIGNED, c3 SMALLINT, c4 INT, c5 INT UNSIGNED, c6 BIGINT,
			c7 BIGINT UNSIGNED, c8 DECIMAL(20,4), c9 FLOAT, c10 DOUBLE, c11 CHAR(10), c12 VARCHAR(100), c13 MEDIUMTEXT, c14 VARBINARY(20), c15 BLOB,
			c16 DATE, c17 DATETIME(6), c18 TIMESTAMP NULL, c19 TIME(6), c20 INT)`)
		w := wanted
		exec(db, "INSERT INTO types VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", 1, w.Tiny, w.TinyU, w.Small, w.Int, w.IntU, w.Big, w.BigU,
			w.Decimal, w.Float, w.Double, w.Char, w.Varchar, w.Text, w.Varbinary, w.Blob, w.Date, w.Datetime, w.Stamp, w.Time, nil)
		for _, statement := range []string{"SELECT * FROM types WHERE id = 1", "SELECT * FROM types WHERE id = ?"} {
			var g row
			var id int
			arguments := []any{1}[:strings.Count(statement, "?")]
			check(db.QueryRow(statement, arguments...).Scan(&id, &g.Tiny, &g.TinyU, &g.Small, &g.Int, &g.IntU, &g.Big, &g.BigU, &g.Decimal, &g.Float,
				&g.Double, &g.Char, &g.Varchar, &g.Text, &g.Varbinary, &g.Blob, &g.Date, &g.Datetime, &g.Stamp, &g.Time, &g.Null))
			equal(g, w)
		}
	}
}

func prepared() {
	db := open(nil)
	defer db.Close()
	exec(db, "DROP TABLE IF EXISTS prepared")
	exec(db, "CREATE TABLE prepared (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20))")
	insert, err := db.Prepare("INSERT INTO prepared (v) VALUES (?)")
	check(err)
	defer insert.Close()
	for i := range 100 {
		result, err := insert.Exec(fmt.Sprint("v", i))
		check(err)
		id, _ := result.LastInsertId()
		equal(id, int64(i+1))
	}
	result, err := db.Prepare("SELECT id, v FROM prepared WHERE id > ? ORDER BY id")
	check(err)
	defer result.Close()
	for _, after := range []int{0, 50, 100} {
		rows, err := result.Query(after)
		check(err)
		n := 0
		for rows.Next() {
			var id int
			var v string
			check(rows.Scan(&id, &v))
			n++
			equal(v, fmt.Sprint("v", id-1))
		}
		check(rows.Err())
		equal(n, 100-after)
	}
}

func transactions() {
	db := open(nil)
	defer db.Close()
	exec(db, "DROP TABLE IF EXISTS tx")
	exec(db, "CREATE TABLE tx (id INT PRIMARY KEY)")
	count := func() (n int) {
		check(db.QueryRow("SELECT COUNT(*) FROM tx").Scan(&n))
		return
	}
	for _, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
		check(err)
		_, err = tx.Exec("INSERT INTO tx VALUES (?)", int(level))
		check(err)
		check(tx.Rollback())
	}
	equal(count(), 0)
	tx, err := db.Begin()
	check(err)
	_, err = tx.Exec("INSERT INTO tx VALUES (1)")
	check(err)
	check(tx.Commit())
	equal(count(), 1)
	readOnly, err := db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	check(err)
	_, err = readOnly.Exec("INSERT INTO tx VALUES (2)")
	refused(err, 1792)
	check(readOnly.Rollback())
}

func errorsAreMysqls() {
	db := open(nil)
	defer db.Close()
	exec(db, "DROP TABLE IF EXISTS errors")
	exec(db, "CREATE TABLE errors (id INT PRIMARY KEY)")
	exec(db, "INSERT INTO errors VALUES (1)")
	for statement, number := range map[string]uint16{
		"INSERT INTO errors VALUES (1)": 1062, "SELECT * FROM nowhere": 1146, "SELEKT": 1064, "SELECT x FROM errors": 1054, "SELECT 1; SELECT 2": 1064,
	} {
		_, err := db.Exec(statement)
		refused(err, number)
	}
	_, err := db.Prepare("SELECT * FROM nowhere WHERE id = ?")
	refused(err, 1146)
}

func multiStatements() {
	db := open(func(c *mysql.Config) { c.MultiStatements = true })
	defer db.Close()
	rows, err := db.Query("SELECT 1; SELECT 2, 3")
	check(err)
	defer rows.Close()
	var a, b, c int
	equal(rows.Next(), true)
	check(rows.Scan(&a))
	equal(rows.Next(), false)
	equal(rows.NextResultSet(), true)
	equal(rows.Next(), true)
	check(rows.Scan(&b, &c))
	equal([]int{a, b, c}, []int{1, 2, 3})
}

func largePackets() {
	for _, interpolate := range []bool{false, true} {
		db := open(func(c *mysql.Config) { c.InterpolateParams = interpolate })
		defer db.Close()
		exec(db, "DROP TABLE IF EXISTS large")
		exec(db, "CREATE TABLE large (id INT PRIMARY KEY, a LONGBLOB, b LONGTEXT)")
		a, b := bytes.Repeat([]byte{0, 255, 39, 92}, 2_500_000), strings.Repeat("ü", 5_000_000)
		exec(db, "INSERT INTO large VALUES (1, ?, ?)", a, b)
		var gotA []byte
		var gotB string
		check(db.QueryRow("SELECT a, b FROM large WHERE id = ?", 1).Scan(&gotA, &gotB))
		equal(bytes.Equal(a, gotA) && b == gotB, true)
	}
}

func compression() {
	db := open(func(c *mysql.Config) { check(c.Apply(mysql.EnableCompression(true))) })
	defer db.Close()
	var s string
	check(db.QueryRow("SELECT REPEAT('abc', 100000)").Scan(&s))
	equal(s == strings.Repeat("abc", 100000), true)
	check(db.QueryRow("SELECT ?", strings.Repeat("x", 1000)).Scan(&s))
	equal(len(s), 1000)
}

func tls() {
	cipher := func(db *sql.DB) (name, value string) {
		check(db.QueryRow("SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &value))
		return
	}
	db := open(func(c *mysql.Config) { c.TLSConfig = "skip-verify" })
	defer db.Close()
	_, name := cipher(db)
	equal(name != "", true)
	plain := open(nil)
	defer plain.Close()
	_, name = cipher(plain)
	equal(name, "")
}

func users() {
	plugins := []string{"mysql_native_password"}
	if !mariadb {
		plugins = append(plugins, "caching_sha2_password")
	}
	db := open(nil)
	defer db.Close()
	for _, plugin := range plugins {
		name := "go_" + plugin[:6]
		exec(db, "DROP USER IF EXISTS "+name+"@'%'")
		if mariadb {
			exec(db, "CREATE USER "+name+"@'%' IDENTIFIED BY 's3cret€'")
		} else {
			exec(db, "CREATE USER "+name+"@'%' IDENTIFIED WITH "+plugin+" BY 's3cret€'")
		}
		exec(db, "GRANT ALL ON "+database+".* TO "+name+"@'%'")
		for _, encryption := range []string{"", "skip-verify", ""} {
			own := open(func(c *mysql.Config) { c.User, c.Passwd, c.TLSConfig = name, "s3cret€", encryption })
			var who string
			check(own.QueryRow("SELECT CURRENT_USER()").Scan(&who))
			equal(who, name+"@%")
			own.Close()
		}
		wrong := open(func(c *mysql.Config) { c.User, c.Passwd = name, "wrong" })
		refused(wrong.Ping(), 1045)
		wrong.Close()
		exec(db, "DROP USER "+name+"@'%'")
	}
}

// A context that ends kills nothing on the server, but the connection is gone and the pool goes on.
func cancelled() {
	db := open(nil)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := db.ExecContext(ctx, "SELECT SLEEP(2)")
	equal(errors.Is(err, context.DeadlineExceeded), true)
	check(db.Ping())
}

func main() {
	setup := open(func(c *mysql.Config) { c.DBName = "" })
	exec(setup, "DROP DATABASE IF EXISTS "+database)
	exec(setup, "CREATE DATABASE "+database)
	status := 0
	for _, test := range []struct {
		name string
		run  func()
	}{
		{"types", types}, {"prepared", prepared}, {"transactions", transactions}, {"errors", errorsAreMysqls}, {"multi statements", multiStatements},
		{"large packets", largePackets}, {"compression", compression}, {"tls", tls}, {"users", users}, {"cancelled", cancelled},
	} {
		func() {
			defer func() {
				switch reason := recover().(type) {
				case nil:
					fmt.Printf("go %s: ok\n", test.name)
				case failed:
					status = 1
					fmt.Printf("go %s: FAILED: %s\n", test.name, reason)
				default:
					panic(reason)
				}
			}()
			test.run()
		}()
	}
	exec(setup, "DROP DATABASE "+database)
	os.Exit(status)
}
