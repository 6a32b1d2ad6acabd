// Package linktest makes the links that tests of devices stand on: two that
// reach each other, in memory or by UDP, and one that breaks.
//
// It holds no test, and nothing of devices: rnic and rnic/drive, and whatever
// stands on a link.Link, ask for links and make their devices themselves. A
// link of UDP ends with the test; one in memory has nothing to give back.
package linktest
