// Package rdmanettest gives tests two ends of a connection of package rdmanet,
// on two private devices with faults of the test's choice, as net.Pipe does:
//
//	x, y := rdmanettest.Pipe(t, "loss=1%&seed=7", rdmanet.Config{})
//
// and, for servers, a dialer and a listener:
//
//	dialer, l := rdmanettest.Listen(t, "loss=1%&seed=7", rdmanet.Config{})
//
// Nothing is bound, so that tests run in parallel, and in a testing/synctest
// bubble, where timeouts pass in no time. It is not a model of a network: what
// runs is the soft RNIC that programs use, faults included.
//
// A call flows: Listen opens two devices by uapitest.Pair, listens on one, and
// gives the other to the dialer; Pipe dials and accepts once; at the end of the
// test they wait until closed connections have gone, and uapitest looks for
// what is left.
package rdmanettest
