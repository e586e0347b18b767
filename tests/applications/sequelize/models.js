// A forum's models: types, validations, hooks, scopes, associations of each kind, virtual and JSON columns, paranoid deletion.
const { Sequelize, DataTypes, Model, Op } = require('sequelize');

module.exports = function define(sequelize) {
  class User extends Model {}
  User.init(
    {
      id: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4, primaryKey: true },
      name: { type: DataTypes.STRING(60), allowNull: false, unique: 'user_name', comment: "what it's called" },
      email: { type: DataTypes.STRING, validate: { isEmail: true } },
      born: DataTypes.DATEONLY,
      role: { type: DataTypes.ENUM('guest', 'member', 'admin'), defaultValue: 'member', allowNull: false },
      settings: { type: DataTypes.JSON, defaultValue: {} },
      avatar: DataTypes.BLOB('tiny'),
      balance: { type: DataTypes.DECIMAL(12, 2), defaultValue: 0 },
      score: DataTypes.FLOAT,
      logins: { type: DataTypes.INTEGER.UNSIGNED, defaultValue: 0 },
      active: { type: DataTypes.BOOLEAN, defaultValue: true },
      wakes: DataTypes.TIME,
      shout: {
        type: DataTypes.VIRTUAL,
        get() {
          return this.name.toUpperCase();
        },
      },
    },
    {
      sequelize,
      modelName: 'user',
      underscored: true,
      paranoid: true,
      version: true,
      indexes: [
        {
          fields: [
            { name: 'email', length: 20 },
            { name: 'born', order: 'DESC' },
          ],
          name: 'by_email',
        },
        { fields: ['role'], using: 'BTREE' },
      ],
      scopes: { admins: { where: { role: 'admin' } }, poor: (limit) => ({ where: { balance: { [Op.lt]: limit } } }) },
      hooks: {
        beforeCreate(user) {
          user.email ??= `${user.name}@example.org`;
        },
      },
    },
  );
  const Profile = sequelize.define(
    'profile',
    { text: DataTypes.TEXT('medium'), big: DataTypes.BIGINT.UNSIGNED, rate: DataTypes.DOUBLE },
    { timestamps: false },
  );
  const Topic = sequelize.define(
    'topic',
    { title: { type: DataTypes.STRING(200), allowNull: false }, pinned: DataTypes.BOOLEAN },
    { comment: 'threads' },
  );
  const Post = sequelize.define('post', {
    body: DataTypes.TEXT,
    written: { type: DataTypes.DATE(6), defaultValue: DataTypes.NOW },
    votes: { type: DataTypes.INTEGER, defaultValue: 0 },
  });
  const Label = sequelize.define(
    'label',
    { code: { type: DataTypes.CHAR(4), primaryKey: true } },
    { timestamps: false, charset: 'utf8mb4', collate: 'utf8mb4_bin' },
  );
  const Labelled = sequelize.define(
    'labelled',
    { weight: { type: DataTypes.TINYINT, defaultValue: 1 } },
    { timestamps: false, freezeTableName: true, charset: 'utf8mb4', collate: 'utf8mb4_bin' },
  );
  User.hasOne(Profile, { onDelete: 'CASCADE', foreignKey: { name: 'userId', allowNull: false } });
  Profile.belongsTo(User, { foreignKey: 'userId' });
  User.hasMany(Post, { as: 'posts', foreignKey: 'authorId', onDelete: 'SET NULL' });
  Post.belongsTo(User, { as: 'author', foreignKey: 'authorId' });
  Topic.hasMany(Post, { onDelete: 'CASCADE', onUpdate: 'CASCADE' });
  Post.belongsTo(Topic);
  Post.belongsTo(Post, { as: 'answered', constraints: true });
  Topic.belongsToMany(Label, { through: Labelled });
  Label.belongsToMany(Topic, { through: Labelled });
  User.belongsToMany(User, { as: 'followed', through: 'follows', foreignKey: 'follower', otherKey: 'followee' });
  return { User, Profile, Topic, Post, Label, Labelled };
};
