//go:build race

package vmtest

// Race says that the tests are built with the race detector; then those in
// guests are, too.
const Race = true
