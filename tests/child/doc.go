// Package child starts a test binary once more, as a helper process of a test.
//
// A call flows: Start runs the binary with a variable in its environment, by
// which the helper finds its part; the helper prints its address or the like,
// which the test reads from Out; it ends with its standard input, so with the
// test's process at the latest.
//
// It is no sandbox: package netns has namespaces.
package child
