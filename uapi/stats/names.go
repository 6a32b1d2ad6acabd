package stats

import "strings"

// Kind describes a counter: its family, label and meaning.
type Kind struct {
	Name string // the counter's
	// Family is the counter's family. It is Name unless several counters split
	// one total by Label: those of family "drops" by the label "cause", for
	// instance, whose Value for drop_icrc is "icrc".
	Family, Label, Value string
	Help                 string // of the family, a sentence
}

// Families of more than one counter.
const (
	familyMessages      = "messages"
	familyNAKsSent      = "naks_sent"
	familyNAKsReceived  = "naks_received"
	familyDrops         = "drops"
	familyConnects      = "cm_messages"
	familyConnectsDrops = "cm_drops"
	familyFaults        = "faults"
)

var familyHelp = map[string]string{
	familyMessages:      "Messages completed, by operation; recv are receives consumed, the others requests sent.",
	familyNAKsSent:      "Negative acknowledgements sent, by kind.",
	familyNAKsReceived:  "Negative acknowledgements received, by kind.",
	familyDrops:         "Packets dropped, by cause; send_ are causes of packets that did not leave, the others of such as came.",
	familyConnects:      "What the connection manager did, by event.",
	familyConnectsDrops: "Messages that the connection manager dropped, by cause.",
	familyFaults:        "Faults injected into what the device sends, by kind.",
}

// singles are the counters that are a family of their own.
var singles = map[string]string{
	"sent_pkts":                  "Packets sent, repeated ones and acknowledgements included.",
	"sent_bytes":                 "Bytes of payload sent, repeated ones included.",
	"rcvd_pkts":                  "Packets received.",
	"rcvd_bytes":                 "Bytes of payload received.",
	"retransmitted_pkts":         "Packets sent again.",
	"completer_retry_err":        "Times that a requester went back to send again, whatever the reason.",
	"retransmit_timeouts":        "Times that it did because nothing was heard for a retransmission timeout.",
	"implied_nak_seq":            "Responses that showed that one before them was lost.",
	"np_ecn_marked_roce_packets": "Packets received that a switch marked, or that met a receive buffer that several peers had more than half full.",
	"np_cnp_sent":                "Congestion notification packets sent to devices other than soft ones.",
	"rp_cnp_handled":             "Congestion notification packets, and packets with BECN, received and obeyed.",
	"duplicate_request":          "Requests received more than once.",
	"out_of_seq_request":         "Requests received beyond the expected packet sequence number.",
	"send_rnr_err":               "RNR NAKs sent: no receive was posted.",
	"rcvd_rnr_err":               "RNR NAKs received: the peer had no receive posted.",
	"retry_exceeded_err":         "Requests given up because the peer did not answer.",
	"retry_rnr_exceeded_err":     "Requests given up because the peer had no receive.",
	"send_err":                   "Requests that failed before they were sent: lengths, keys, queue entries.",
	"flushed":                    "Work requests flushed, because their queue pair was in the error state.",
	"refused_guesser":            "Connections, and requests for them, refused because the peer's address guesses remote keys.",
	"link_downed":                "Times that the link failed.",
	"ack_deferred":               "Acknowledgements deferred; rdma_rxe has the counter and counts nothing.",
	"cq_overflow":                "Completions lost because their queue was full.",
	"drop_send":                  "Packets that did not leave: the sum of the drops whose cause begins with send_.",
	"icrc_solved":                "Packets whose IPv4 identification was found out to check their ICRC.",
	"gso_sends":                  "Sends that the system cut into several packets.",
	"gso_pkts":                   "Packets that left in such sends.",
	"gso_refused":                "Sends of several packets that the system refused.",
	"gso_reduced":                "Times that sends were made smaller for that.",
	"gso_suspended":              "Times that a peer was sent single packets for a while, after losses.",
	"gro_reads":                  "Reads that brought several packets.",
	"gro_pkts":                   "Packets that came in such reads.",
	"shm_sent_pkts":              "Of the packets sent, those that went through shared memory.",
	"shm_sent_bytes":             "Of the bytes of payload sent, those that went through shared memory.",
	"shm_rcvd_pkts":              "Of the packets received, those that came through shared memory.",
	"shm_rcvd_bytes":             "Of the bytes of payload received, those that came through shared memory.",
	"shm_ref_bytes":              "Of the bytes sent through shared memory, those that the peer read where they lay.",
	"shm_pulled_bytes":           "Of the bytes received through shared memory, those that were read where the peer had them.",
	"shm_recalled":               "Packets lost because the payload that they lent was taken back.",
	"shm_peers":                  "Devices of this host that were met.",
	"shm_deaths":                 "Devices of this host that hung up.",
	"shm_fallback":               "Devices of this host that could not be met, and are reached by UDP.",
	"shm_broken":                 "Rings in shared memory that ended because the peer broke their rules.",
	"pcap_pkts":                  "Packets written to the capture.",
	"pcap_drop":                  "Packets missing in the capture.",
}

// members are counters of a family whose names do not begin alike.
var members = map[string]Kind{
	"rdma_sends":      {Family: familyMessages, Label: "operation", Value: "send"},
	"rdma_recvs":      {Family: familyMessages, Label: "operation", Value: "recv"},
	"rdma_writes":     {Family: familyMessages, Label: "operation", Value: "write"},
	"rdma_reads":      {Family: familyMessages, Label: "operation", Value: "read"},
	"rdma_atomics":    {Family: familyMessages, Label: "operation", Value: "atomic"},
	"nak_seq_sent":    {Family: familyNAKsSent, Label: "nak", Value: "sequence"},
	"nak_inv_sent":    {Family: familyNAKsSent, Label: "nak", Value: "invalid"},
	"nak_access_sent": {Family: familyNAKsSent, Label: "nak", Value: "access"},
	"nak_op_sent":     {Family: familyNAKsSent, Label: "nak", Value: "operation"},
	"nak_seq_rcvd":    {Family: familyNAKsReceived, Label: "nak", Value: "sequence"},
	"rcvd_seq_err":    {Family: familyNAKsReceived, Label: "nak", Value: "sequence"}, // rdma_rxe's name of nak_seq_rcvd
	"nak_inv_rcvd":    {Family: familyNAKsReceived, Label: "nak", Value: "invalid"},
	"nak_access_rcvd": {Family: familyNAKsReceived, Label: "nak", Value: "access"},
	"nak_op_rcvd":     {Family: familyNAKsReceived, Label: "nak", Value: "operation"},
}

// prefixes are families whose counters begin alike; the longer ones go first.
var prefixes = []struct{ prefix, family, label string }{
	{"cm_drop_", familyConnectsDrops, "cause"},
	{"cm_", familyConnects, "event"},
	{"drop_", familyDrops, "cause"},
	{"fault_", familyFaults, "fault"},
}

// Lookup describes a counter by its name. An unknown counter, of another
// driver, is a family of its own.
func Lookup(name string) Kind {
	if help, ok := singles[name]; ok {
		return Kind{Name: name, Family: name, Help: help}
	}
	if k, ok := members[name]; ok {
		k.Name, k.Help = name, familyHelp[k.Family]
		return k
	}
	for _, p := range prefixes {
		if value, ok := strings.CutPrefix(name, p.prefix); ok && value != "" {
			return Kind{Name: name, Family: p.family, Label: p.label, Value: value, Help: familyHelp[p.family]}
		}
	}
	return Kind{Name: name, Family: name, Help: "A counter of the device's driver."}
}
