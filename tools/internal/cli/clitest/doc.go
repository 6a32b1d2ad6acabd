// Package clitest runs commands of rdmashim in tests, each in a process of its
// own that runs the test's binary. Package cli runs them in the process.
//
// A package with commands calls Main from its TestMain, with its constructors.
// RunTool then starts the binary again, as if it were rdmashim with those
// commands, and returns exit status and output; Tool only prepares it. Serve
// starts a server and waits until it listens, on an address of Host, and
// Refused runs command lines that end with an error. Well, Decode and Golden
// look at what a command printed.
package clitest
