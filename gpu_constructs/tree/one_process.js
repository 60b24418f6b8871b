// Entry point of the JavaScript half of jsii that runs in one process. The entry point of jsii starts a second process
// and only relays messages to it. This file takes its place beside it, as bin/one-process.js.
'use strict';

const fs = require('fs');
const { Writable } = require('stream');

// On other releases, the entry point of jsii may print a warning first.
const NODE_RELEASES = ['22', '24'];
// The program reads requests from this file descriptor, and writes responses to it.
const CHANNEL = 3;
const [REQUESTS, RESPONSES, CONSOLE] = [0, 1, 2];

function runInThisProcess() {
  const { readSync, writeSync } = fs;

  // The Python half expects console output as lines of JSON, because it reads them from one pipe.
  function print(name, bytes) {
    const line = Buffer.from(`${JSON.stringify({ [name]: Buffer.from(bytes).toString('base64') })}\n`);
    for (let sent = 0; sent < line.length; sent += writeSync(CONSOLE, line, sent));
  }

  function consoleStream(name, fd) {
    const stream = new Writable({
      decodeStrings: true,
      write(bytes, _encoding, done) {
        print(name, bytes);
        done();
      },
    });
    Object.defineProperty(process, name, { configurable: true, enumerable: true, value: Object.assign(stream, { fd }) });
  }

  fs.readSync = (fd, ...rest) => readSync(fd === CHANNEL ? REQUESTS : fd, ...rest);
  fs.writeSync = (fd, data, ...rest) => {
    if (fd === CHANNEL) return writeSync(RESPONSES, data, ...rest);
    if (fd !== RESPONSES && fd !== CONSOLE) return writeSync(fd, data, ...rest);
    const [offset = 0, length] = rest.filter(Number.isInteger);
    const bytes = Buffer.from(data).subarray(offset, length === undefined ? undefined : offset + length);
    print(fd === RESPONSES ? 'stdout' : 'stderr', bytes);
    return bytes.length;
  };
  consoleStream('stdout', RESPONSES);
  consoleStream('stderr', CONSOLE);
  require('../lib/program.js');
}

if (NODE_RELEASES.includes(process.versions.node.split('.')[0])) runInThisProcess();
else require('./jsii-runtime.js');
