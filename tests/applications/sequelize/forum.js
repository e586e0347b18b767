// Runs the forum: sync in its three modes, queries, associations, transactions, migrations there and back.
const assert = require('node:assert/strict');
const { Sequelize, DataTypes, Op, QueryTypes } = require('sequelize');
const { Umzug, SequelizeStorage } = require('umzug');
const define = require('./models');

const env = process.env;
const sequelize = new Sequelize(env.APPLICATION_DATABASE, env.APPLICATION_USER, env.APPLICATION_PASSWORD, {
  host: env.RAUK_HOST,
  port: Number(env.RAUK_PORT),
  dialect: 'mysql',
  logging: false,
  timezone: '+02:00',
  pool: { max: 5 },
  dialectOptions: { supportBigNumbers: true, bigNumberStrings: true },
});
const { User, Profile, Topic, Post, Label, Labelled } = define(sequelize);
const { fn, col, literal, where, cast, json } = Sequelize;

async function refused(action, name, code) {
  await assert.rejects(action, (error) => {
    assert.equal(error.name, name, error.stack);
    if (code) assert.equal(error.original.errno, code);
    return true;
  });
}

async function sync() {
  await sequelize.authenticate();
  assert.match(await sequelize.databaseVersion(), /^8\./);
  await sequelize.sync();
  await sequelize.sync({ alter: true });
  await sequelize.sync({ force: true });
  const q = sequelize.getQueryInterface();
  const tables = (await q.showAllTables()).sort();
  assert.deepEqual(tables, ['follows', 'labelled', 'labels', 'posts', 'profiles', 'topics', 'users']);
  const users = await q.describeTable('users');
  assert.equal(users.id.type, 'CHAR(36)');
  assert.deepEqual([users.id.primaryKey, users.name.allowNull, users.name.comment], [true, false, "what it's called"]);
  assert.equal(users.role.type, "ENUM('guest','member','admin')");
  assert.deepEqual(
    [users.role.defaultValue, users.logins.type, users.balance.type],
    ['member', 'INT UNSIGNED', 'DECIMAL(12,2)'],
  );
  const indexes = await q.showIndex('users');
  const byEmail = indexes.find((index) => index.name === 'by_email');
  assert.deepEqual(
    byEmail.fields.map((f) => [f.attribute, f.length, f.order]),
    [
      ['email', '20', 'ASC'],
      ['born', undefined, undefined],
    ],
  );
  assert.ok(indexes.find((index) => index.name === 'user_name').unique);
  const keys = await q.getForeignKeyReferencesForTable('posts');
  assert.deepEqual(keys.map((k) => [k.columnName, k.referencedTableName]).sort(), [
    ['answeredId', 'posts'],
    ['authorId', 'users'],
    ['topicId', 'topics'],
  ]);
  const constraints = await q.showConstraint('profiles');
  assert.ok(constraints.length >= 1);
}

async function use() {
  const ada = await User.create(
    {
      name: 'ada',
      born: '1815-12-10',
      settings: { theme: { dark: true, sizes: [1, 2.5] }, 'a "b"': null },
      avatar: Buffer.from([0, 39, 92, 255]),
      balance: '12345.67',
      score: 1.5,
      wakes: '06:30:00',
      role: 'admin',
      profile: { text: 'long '.repeat(1000), big: '18446744073709551615', rate: 1 / 3 },
    },
    { include: [Profile] },
  );
  const bob = await User.create({ name: 'bob' });
  const many = await User.bulkCreate(
    Array.from({ length: 50 }, (_, n) => ({
      name: `user ${n}`,
      balance: n,
      score: n / 2,
      settings: { n, tags: ['x', n % 2 ? 'odd' : 'even'] },
    })),
    { individualHooks: true },
  );
  const read = await User.findOne({ where: { name: 'ADA' }, include: Profile });
  assert.equal(read.id, ada.id);
  assert.deepEqual(read.settings, { theme: { dark: true, sizes: [1, 2.5] }, 'a "b"': null });
  assert.deepEqual([...read.avatar], [0, 39, 92, 255]);
  assert.deepEqual(
    [read.balance, read.score, read.wakes, read.born, read.active, read.shout],
    ['12345.67', 1.5, '06:30:00', '1815-12-10', true, 'ADA'],
  );
  assert.deepEqual(
    [read.profile.big, read.profile.text.length, read.profile.rate],
    ['18446744073709551615', 5000, 1 / 3],
  );
  assert.ok(Math.abs(read.createdAt - Date.now()) < 60000);

  const count = (where) => User.count({ where });
  assert.equal(await count({ balance: { [Op.between]: [10, 19] } }), 10);
  assert.equal(await count({ name: { [Op.like]: 'user 4%' } }), 11);
  assert.equal(await count({ name: { [Op.startsWith]: 'user', [Op.notLike]: '%1' } }), 45);
  assert.equal(await count({ name: { [Op.regexp]: '^user [0-9]$' } }), 10);
  assert.equal(
    await count({ [Op.or]: [{ name: 'bob' }, { role: { [Op.in]: ['admin'] } }], active: { [Op.not]: false } }),
    2,
  );
  assert.equal(await count({ settings: { theme: { dark: true } } }), 1);
  assert.equal(await count({ 'settings.n': { [Op.gt]: 44 } }), 5);
  assert.equal(await count(literal(`JSON_CONTAINS(settings, '"odd"', '$.tags')`)), 25);
  assert.equal(await count(where(fn('lower', col('name')), { [Op.eq]: 'bob' })), 1);
  assert.equal(await User.scope('admins').count(), 1);
  assert.equal(await User.scope({ method: ['poor', 3] }).count(), 4);
  assert.deepEqual(
    [await User.sum('balance', { where: { role: 'member' } }), await User.max('balance')].map(Number),
    [1225, 12345.67],
  );
  const groups = await User.findAll({
    attributes: [
      'role',
      [fn('COUNT', col('id')), 'n'],
      [fn('AVG', col('score')), 'mean'],
      [fn('GROUP_CONCAT', literal("name ORDER BY name SEPARATOR '|'")), 'names'],
    ],
    group: 'role',
    having: where(fn('COUNT', col('id')), Op.gt, 1),
    raw: true,
  });
  assert.equal(groups.length, 1);
  assert.deepEqual([groups[0].role, Number(groups[0].n), groups[0].mean], ['member', 51, 12.25]);
  const page = await User.findAndCountAll({
    order: [
      ['balance', 'DESC'],
      ['name', 'ASC'],
    ],
    limit: 3,
    offset: 1,
  });
  assert.deepEqual([page.count, page.rows.map((u) => u.name)], [52, ['user 49', 'user 48', 'user 47']]);

  const topic = await Topic.create({ title: 'First 🎉 \'quoted\' \\ "x"', pinned: true });
  const labels = await Label.bulkCreate([{ code: 'new' }, { code: 'NEW' }, { code: 'old' }]);
  await topic.addLabels(labels.slice(0, 2), { through: { weight: 7 } });
  assert.equal(await topic.countLabels(), 2);
  await topic.setLabels([labels[0], labels[2]]);
  assert.ok(await topic.hasLabel(labels[2]));
  assert.deepEqual(
    (await topic.getLabels({ order: ['code'], joinTableAttributes: ['weight'] })).map((l) => [
      l.code,
      l.labelled.weight,
    ]),
    [
      ['new', 7],
      ['old', 1],
    ],
  );
  const first = await topic.createPost({
    body: 'one',
    authorId: ada.id,
    written: new Date('2024-03-04T05:06:07.890Z'),
  });
  const second = await topic.createPost({ body: 'two', authorId: bob.id, answeredId: first.id, votes: 3 });
  await ada.addFollowed([bob, many[0]]);
  assert.equal((await ada.getFollowed()).length, 2);
  const [tree] = await Topic.findAll({
    where: { '$posts.author.name$': { [Op.in]: ['ada', 'bob'] } },
    order: [[Post, 'id', 'ASC']],
    include: [
      {
        model: Post,
        required: true,
        include: [{ association: 'author', attributes: ['name'] }, { association: 'answered' }],
      },
      { model: Label, through: { attributes: [] } },
    ],
  });
  assert.deepEqual(
    tree.posts.map((p) => [p.author.name, p.answered && p.answered.body]),
    [
      ['ada', null],
      ['bob', 'one'],
    ],
  );
  assert.equal(tree.labels.length, 2);
  assert.equal(tree.posts[0].written.toISOString(), '2024-03-04T05:06:07.890Z');
  const paged = await Topic.findAll({
    include: [{ model: Post, where: { votes: { [Op.gte]: 0 } } }],
    limit: 1,
    order: [['id', 'DESC']],
  });
  assert.equal(paged[0].posts.length, 2);
  const separate = await User.findAll({
    where: { name: ['ada', 'bob'] },
    include: [{ association: 'posts', separate: true, order: [['id', 'DESC']] }],
    order: ['name'],
  });
  assert.deepEqual(
    separate.map((u) => u.posts.length),
    [1, 1],
  );
  const ranked = await User.findAll({
    attributes: [
      'name',
      [literal('(SELECT COUNT(*) FROM posts p WHERE p.authorId = user.id)'), 'n'],
      [literal('ROW_NUMBER() OVER (ORDER BY balance DESC)'), 'place'],
    ],
    order: [literal('n DESC'), ['name', 'ASC']],
    limit: 2,
    raw: true,
  });
  assert.deepEqual(
    ranked.map((u) => [u.name, Number(u.n)]),
    [
      ['ada', 1],
      ['bob', 1],
    ],
  );

  await second.increment('votes', { by: 4 });
  await second.reload();
  assert.equal(second.votes, 7);
  const [changed] = await Post.update({ votes: literal('votes * 2') }, { where: { votes: { [Op.gt]: 0 } } });
  assert.equal(changed, 1);
  const [, made] = await User.findOrCreate({ where: { name: 'carl' }, defaults: { balance: 5 } });
  const [, again] = await User.findOrCreate({ where: { name: 'carl' } });
  assert.deepEqual([made, again], [true, false]);
  await Label.upsert({ code: 'new' });
  await Labelled.bulkCreate([{ topicId: topic.id, labelCode: 'new', weight: 9 }], { updateOnDuplicate: ['weight'] });
  assert.equal((await Labelled.findOne({ where: { labelCode: 'new' } })).weight, 9);
  await Label.bulkCreate([{ code: 'new' }, { code: 'more' }], { ignoreDuplicates: true });
  assert.equal(await Label.count(), 4);

  await refused(User.create({ name: 'ada' }), 'SequelizeUniqueConstraintError', 1062);
  await refused(Post.create({ topicId: 99999, body: 'x' }), 'SequelizeForeignKeyConstraintError', 1452);
  await refused(User.create({ name: null }), 'SequelizeValidationError');
  await refused(sequelize.query('SELECT nothing FROM users'), 'SequelizeDatabaseError', 1054);
  await refused(sequelize.query('SELEC 1'), 'SequelizeDatabaseError', 1064);
  await refused(
    User.update({ role: 'king' }, { where: { name: 'bob' }, validate: false }),
    'SequelizeDatabaseError',
    1265,
  );
  const unique = await User.create({ name: 'bob' }).catch((error) => error);
  assert.deepEqual([unique.fields, unique.errors[0].path], [{ name: 'bob' }, 'name']);
  const foreign = await Profile.create({ userId: 'nobody' }).catch((error) => error);
  assert.deepEqual([foreign.table, foreign.fields], ['users', ['userId']]);

  const stale = await User.findByPk(bob.id);
  await bob.update({ score: 3 });
  await refused(stale.update({ score: 4 }), 'SequelizeOptimisticLockError');
  await bob.destroy();
  assert.equal(await User.findByPk(bob.id), null);
  assert.ok(await User.findByPk(bob.id, { paranoid: false }));
  await User.restore({ where: { id: bob.id } });
  assert.ok(await User.findByPk(bob.id));
  await topic.destroy();
  assert.equal(await Post.count(), 0);
  await User.destroy({ where: { id: ada.id }, force: true });
  assert.equal(await Profile.count(), 0);

  const rows = await sequelize.query('SELECT ? AS a, ? AS b', { replacements: [1, "it's"], type: QueryTypes.SELECT });
  assert.deepEqual([Number(rows[0].a), rows[0].b], [1, "it's"]);
  const bound = await sequelize.query('SELECT $1 + 1 AS a, $2 AS b, CAST($3 AS JSON) AS c', {
    bind: [41, 'x', '{"y":[1]}'],
    type: QueryTypes.SELECT,
  });
  assert.deepEqual([Number(bound[0].a), bound[0].b, bound[0].c], [42, 'x', { y: [1] }]);
}

async function transactions() {
  await assert.rejects(
    sequelize.transaction(async (t) => {
      await User.create({ name: 'never' }, { transaction: t });
      throw new Error('back');
    }),
    /back/,
  );
  assert.equal(await User.count({ where: { name: 'never' } }), 0);
  for (const isolationLevel of Object.values(Sequelize.Transaction.ISOLATION_LEVELS)) {
    await sequelize.transaction({ isolationLevel }, async (t) => {
      const user = await User.findOne({ where: { name: 'user 1' }, lock: t.LOCK.UPDATE, transaction: t });
      const other = await sequelize.transaction();
      const free = await sequelize.query(
        "SELECT name FROM users WHERE name IN ('user 1', 'user 2') FOR UPDATE SKIP LOCKED",
        { type: QueryTypes.SELECT, transaction: other },
      );
      assert.deepEqual(free, [{ name: 'user 2' }]);
      await other.rollback();
      await user.increment('logins', { transaction: t });
      const nested = await sequelize.transaction({ transaction: t });
      await user.increment('logins', { transaction: nested });
      await nested.rollback();
    });
  }
  assert.equal((await User.findOne({ where: { name: 'user 1' } })).logins, 4);
  await Promise.all(
    Array.from({ length: 20 }, () =>
      sequelize.transaction(async (t) => {
        const user = await User.findOne({ where: { name: 'user 2' }, lock: true, transaction: t });
        await user.update({ logins: user.logins + 1 }, { transaction: t });
      }),
    ),
  );
  assert.equal((await User.findOne({ where: { name: 'user 2' } })).logins, 20);
}

async function migrate() {
  await sequelize.drop();
  const q = sequelize.getQueryInterface();
  const umzug = new Umzug({
    migrations: { glob: 'migrations/*.js' },
    context: q,
    storage: new SequelizeStorage({ sequelize }),
    logger: undefined,
  });
  for (let round = 0; round < 2; round += 1) {
    await umzug.up();
    const items = await q.describeTable('items');
    assert.deepEqual(Object.keys(items), ['id', 'shop', 'count', 'price', 'details']);
    assert.deepEqual(
      [items.count.comment, items.price.type, items.price.defaultValue, items.id.autoIncrement],
      ['how many', 'DECIMAL(10,3)', '0.000', true],
    );
    assert.equal((await q.describeTable('markets')).kind.type, "ENUM('a','b','c')");
    assert.deepEqual(
      await q
        .select(null, 'items', { order: [['id', 'ASC']], raw: true })
        .then((rows) => rows.map((r) => [Number(r.id), r.shop, r.count, r.price, r.details])),
      [
        [1, 1, 1, '1.500', { a: 1 }],
        [2, 2, 1, '2.500', null],
      ],
    );
    await refused(q.bulkInsert('items', [{ shop: 1, count: 0, price: 9 }]), 'SequelizeDatabaseError', 3819);
    assert.deepEqual(
      (await umzug.executed()).map((m) => m.name),
      ['01-create.js', '02-change.js'],
    );
    await umzug.down({ to: 0 });
    assert.deepEqual(await q.showAllTables(), ['SequelizeMeta']);
  }
  await sequelize.drop();
}

(async () => {
  for (const step of [sync, use, transactions, migrate]) await step();
  await sequelize.close();
  console.log('the forum works');
})().catch((error) => {
  console.error(error.sql ?? '', error);
  process.exit(1);
});
