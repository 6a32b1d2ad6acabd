//go:build race

package amount

// Race says that the tests are built with the race detector.
const Race = true
