//! The native API on a user's partitioned tables: single operations, batches, transactions and scans, beside SQL that changes the partitions.

use super::{refused, start};
use rauk_client::{ErrorKind, Record, Value, blocking::wait};

#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "d", table = "t")]
struct Visit {
    #[rauk(key)]
    id: i32,
    #[rauk(key)]
    day: i32,
    seen: i32,
}

fn visit(id: i32, day: i32) -> Visit {
    Visit { id, day, seen: id * 1000 + day }
}

#[test]
fn rows_are_where_sql_finds_them() {
    let mut both = start();
    both.run(
        "CREATE TABLE t (id INT, day INT, seen INT NOT NULL, PRIMARY KEY (id, day), UNIQUE KEY u (seen, day, id), KEY k (seen)) \
         PARTITION BY RANGE (day + 0) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 \
         (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN (20), PARTITION c VALUES LESS THAN (30))",
    );
    wait(async {
        let visits = both.client.open::<Visit>().await.expect("opened");
        let table = both.table("t").await;
        for day in [5, 15, 25] {
            let mut batch = both.client.batch();
            for id in 0..20 {
                let row = visit(id, day);
                let values = [("id", row.id), ("day", row.day), ("seen", row.seen)];
                batch.insert(&table, &values.map(|(name, value)| (name, Value::from(value))));
            }
            assert_eq!(both.client.execute(batch).await.expect("executed").succeeded(), 20);
        }
        assert_eq!(both.one("SELECT COUNT(*), SUM(day) FROM t PARTITION (b)"), "20 | 300");
        assert_eq!(visits.get((3, 15)).await, Ok(Some(visit(3, 15))));
        assert_eq!(visits.get((3, 16)).await, Ok(None));
        let found = table.get_by("u", (7025, 25, 7)).await.expect("read").map(|row| row.get("id"));
        assert_eq!(found, Some(Ok(7)));
        refused(visits.insert(&visit(1, 99)).await, ErrorKind::Refused, 1526);
        assert_eq!(visits.insert(&visit(3, 15)).await.unwrap_err().kind, ErrorKind::Duplicate);

        // In the order of an index, through all partitions; and in none.
        let rows = table.scan_index("PRIMARY").expect("there").range(5..7).collect().await.expect("scanned");
        let keys: Vec<(i32, i32)> =
            rows.iter().map(|r| (r.get("id").expect("id"), r.get("day").expect("day"))).collect();
        assert_eq!(keys, [(5, 5), (5, 15), (5, 25), (6, 5), (6, 15), (6, 25)]);
        let rows = table.scan_index("k").expect("there").range(19_000..).collect().await.expect("scanned");
        assert_eq!(rows.iter().map(|r| r.get("seen").expect("seen")).collect::<Vec<i32>>(), [19_005, 19_015, 19_025]);
        assert_eq!(table.scan().collect().await.expect("scanned").len(), 60);

        // Changes, by each way.
        assert_eq!(table.update((3, 15), &[("seen", Value::from(1))]).await, Ok(true));
        assert_eq!(both.one("SELECT id, day FROM t WHERE seen = 1"), "3 | 15");
        visits.increment((3, 15), "seen", 4).await.expect("incremented");
        visits.write(&Visit { seen: 9, ..visit(4, 25) }).await.expect("written");
        visits.write(&visit(50, 25)).await.expect("written");
        let seen = both.run("SELECT id, day, seen FROM t WHERE seen < 10 ORDER BY seen, id");
        assert_eq!(seen, ["0 | 5 | 5", "3 | 15 | 5", "4 | 25 | 9"]);
        assert_eq!(visits.delete((50, 25)).await, Ok(true));
        let moved = both
            .client
            .transact(async |t| {
                let row = t.get_for_update(&visits, (2, 5)).await?.expect("there");
                t.delete(&visits, (2, 5)).await?;
                t.insert(&visits, &Visit { day: 16, ..row }).await
            })
            .await;
        moved.expect("committed");
        assert_eq!(both.one("SELECT seen FROM t PARTITION (b) WHERE id = 2 AND day = 16"), "2005");

        // SQL changes the partitions meanwhile.
        both.run("ALTER TABLE t DROP PARTITION a");
        assert_eq!(visits.get((3, 5)).await, Ok(None));
        visits.insert(&visit(1, 5)).await.expect("b takes it");
        both.run("ALTER TABLE t REORGANIZE PARTITION c INTO (PARTITION d VALUES LESS THAN (26), PARTITION e VALUES LESS THAN MAXVALUE)");
        visits.insert(&visit(1, 99)).await.expect("e takes it");
        assert_eq!(visits.get((3, 25)).await, Ok(Some(visit(3, 25))));
        both.run("ALTER TABLE t REMOVE PARTITIONING");
        assert_eq!(visits.get((1, 99)).await, Ok(Some(visit(1, 99))));
        assert_eq!(table.scan().collect().await.expect("scanned").len(), 43);
    });
}
