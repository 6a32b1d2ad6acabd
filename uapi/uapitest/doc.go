// Package uapitest gives tests two connected soft devices in one line:
//
//	a, b := uapitest.Pair(t, "loss=1%&seed=7")
//
// and a dialer and a listener in another:
//
//	c, l := uapitest.Listen(t, "")
//
// The devices are private to the test: an in-memory network that nothing else
// is on, no sockets, no ports, nothing bound. Tests that use them run in
// parallel, under the race detector, and in a testing/synctest bubble, where
// timeouts pass in no time.
//
// Connect and Dial have twins with With, which take the queue pairs' settings:
// a test is short, as the founding document's programs are.
//
// A call flows: Pair opens two sim devices on a network that has a number of
// its own (pair.go); Connect and Dial make a queue pair and a region on each
// (connect.go); at the end of the test the devices are closed, and watch.go
// looks for goroutines that go on.
//
// Leaks fail the test: handles that were not destroyed, with the line that made
// them, and goroutines of the devices that do not end.
//
// It is not a model of a network card: the code that runs is the soft RNIC
// that programs use, faults included.
package uapitest
