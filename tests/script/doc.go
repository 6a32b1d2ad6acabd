// Package script plays readable scripts as tests: files of commands and of what
// they lead to, in the form of cockroachdb's datadriven.
//
// A script is blocks. A block is comments (#) and empty lines, commands, a line
// of four dashes, and the results up to the next empty line. The package knows
// no command; it is for tests only.
//
// A test flows: Play reads testdata/*.txt and makes a player for each, hands it
// the commands of a block, and compares what the player then tells with the
// results. With the flag -rewrite it writes them anew; read the difference.
package script
