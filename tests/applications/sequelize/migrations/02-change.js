// Columns, keys and constraints that come, change and go.
const { DataTypes } = require('sequelize');

exports.up = async ({ context: q }) => {
  await q.addColumn('items', 'count', {
    type: DataTypes.INTEGER,
    allowNull: false,
    defaultValue: 1,
    after: 'shop',
    comment: 'how many',
  });
  await q.changeColumn('items', 'price', { type: DataTypes.DECIMAL(10, 3), allowNull: true, defaultValue: 0 });
  await q.renameColumn('items', 'info', 'details');
  await q.addIndex('items', ['price', 'count'], { name: 'by_price' });
  await q.addIndex('items', { fields: ['shop', 'price'], unique: true, name: 'once' });
  await q.addConstraint('items', {
    fields: ['count'],
    type: 'check',
    name: 'count_positive',
    where: { count: { [require('sequelize').Op.gt]: 0 } },
  });
  await q.changeColumn('shops', 'kind', { type: DataTypes.ENUM('a', 'b', 'c') });
  await q.removeIndex('items', 'by_price');
  await q.renameTable('shops', 'markets');
};
exports.down = async ({ context: q }) => {
  await q.renameTable('markets', 'shops');
  await q.changeColumn('shops', 'kind', { type: DataTypes.ENUM('a', 'b') });
  await q.sequelize.query('ALTER TABLE items DROP CHECK count_positive');
  await q.addIndex('items', ['shop'], { name: 'shop' });
  await q.removeIndex('items', 'once');
  await q.renameColumn('items', 'details', 'info');
  await q.changeColumn('items', 'price', { type: DataTypes.DECIMAL(8, 2), allowNull: false });
  await q.removeColumn('items', 'count');
};
