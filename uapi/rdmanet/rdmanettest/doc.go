// Package rdmanettest gives tests a listener and a dialer of package rdmanet on
// two private devices:
//
//	l, dialer := rdmanettest.Pair(t, "loss=1%&seed=7", rdmanet.Config{})
//
// Nothing is bound, so that tests run in parallel, and in a testing/synctest
// bubble, where timeouts pass in no time. It is not a model of a network: what
// runs is the soft RNIC that programs use, faults included.
//
// A call flows: Pair opens two devices by uapitest.Pair, listens on one, and
// gives the other to the dialer; at the end of the test it waits until closed
// connections have gone, and uapitest looks for what is left.
package rdmanettest
