// Tables by the query interface, with rows.
const { DataTypes } = require('sequelize');

exports.up = async ({ context: q }) => {
  await q.createTable(
    'shops',
    {
      id: { type: DataTypes.INTEGER, autoIncrement: true, primaryKey: true },
      name: { type: DataTypes.STRING(50), allowNull: false, defaultValue: 'none' },
      kind: DataTypes.ENUM('a', 'b'),
      opened: { type: DataTypes.DATE, defaultValue: q.sequelize.literal('CURRENT_TIMESTAMP') },
    },
    { comment: 'shops', uniqueKeys: { one_name: { fields: ['name'] } } },
  );
  await q.createTable('items', {
    id: { type: DataTypes.BIGINT, autoIncrement: true, primaryKey: true },
    shop: {
      type: DataTypes.INTEGER,
      references: { model: 'shops', key: 'id' },
      onDelete: 'CASCADE',
      onUpdate: 'RESTRICT',
    },
    price: { type: DataTypes.DECIMAL(8, 2), allowNull: false },
    info: DataTypes.JSON,
  });
  await q.bulkInsert('shops', [
    { name: 'one', kind: 'a' },
    { name: 'two', kind: 'b' },
  ]);
  await q.bulkInsert('items', [
    { shop: 1, price: 1.5, info: JSON.stringify({ a: 1 }) },
    { shop: 2, price: 2.5 },
  ]);
};
exports.down = async ({ context: q }) => {
  await q.dropTable('items');
  await q.dropTable('shops');
};
