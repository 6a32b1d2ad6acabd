// Package ruletext takes the text of rules of faults apart: of packets
// (rnic/link/rules) and of calls (kshim/refuse), whose words are their own. It
// knows no rule, and bounds what a stranger's text may ask for. A text flows
// from Lines, a line for each rule, to the rule's package, and from there by
// Words back to it, a word at a time.
//
//	drop op=ACK nth=3
//	# a remark
//	dup op=CM_REQ; ecn every=10
package ruletext
