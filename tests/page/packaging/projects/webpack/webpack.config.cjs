const path = require('node:path');

module.exports = {
  mode: 'production',
  context: __dirname,
  entry: './main.js',
  output: { path: path.join(__dirname, 'dist'), filename: 'main.js' },
  performance: false,
};
