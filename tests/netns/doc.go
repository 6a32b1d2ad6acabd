// Package netns runs a test in a network namespace of its own, where every
// address and port is free and nothing leaves the machine.
//
// It makes no second namespace and no link between two: package netpath does.
//
// A test calls Own first. In the test's own process that runs the test binary
// again, in a new network namespace (and without root in a new user namespace),
// for this one test, takes over its outcome and reports false; in that second
// process it brings lo up and reports true.
package netns
