package explain

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// rejects has what is known of reasons that are met in practice.
var rejects = map[wire.RejectReason]advice{
	wire.RejNoQP:              {causes: []string{"the peer's device has no room for another queue pair"}, look: []string{"rdmashim resource show, at the peer", "limits of its device: max_qp"}},
	wire.RejNoResources:       {causes: []string{"the peer's device or its connection manager is out of room"}, look: []string{"memory lock limit (ulimit -l) and device limits of the peer"}},
	wire.RejTimeout:           {causes: []string{"messages of the connection manager are lost in one direction", "the peer answered too late"}, look: []string{"UDP 4791 in both directions: rdmashim doctor", "REQ, REP and RTU in rdmashim dump"}},
	wire.RejInvalidServiceID:  {causes: []string{"nobody listens on this port: the peer's program is not there, or listens on another port, address or port space (TCP, UDP, IB)", "it listens on another device or network namespace"}, look: []string{"rdmashim resource show cm_id, at the peer", "the service in the REQ: rdmashim dump"}},
	wire.RejStaleConn:         {causes: []string{"the peer still has a connection with this queue pair, from before this side was started again"}, look: []string{"trying again helps: the peer drops the old connection when it finds out"}},
	wire.RejInvalidGID:        {causes: []string{"the GID of the request is not of the port where it arrived"}, look: []string{"GID tables of both ends: rdmashim devices", "NAT or changed addresses on the path"}},
	wire.RejPortCMRedirect:    {causes: []string{"several processes share the peer's address, and what listens there is not the one that has UDP port 4791; soft devices go on to its port by themselves, cards and rdma_rxe cannot"}, look: []string{"give the server an address of its own", "the UDP port, in place of the RedirectLID in the REJ: rdmashim dump -j"}},
	wire.RejInvalidMTU:        {causes: []string{"the path MTU asked for is beyond the peer's"}, look: []string{"active MTU of both ends: rdmashim devices"}},
	wire.RejFewResources:      {causes: []string{"the peer answered with fewer READs and atomics (responder resources, initiator depth) than can be used"}, look: []string{"responder_resources and initiator_depth of both programs"}},
	wire.RejConsumer:          {causes: []string{"the peer's program refused, or closed its listening socket with the request in it; its reason may be in the private data"}, look: []string{"the log of the peer's program", "private data of the REJ: rdmashim dump -j"}},
	wire.RejVendorUnsupported: {causes: []string{"the peer's program does not support an option asked for"}, look: []string{"versions of both programs"}},
}

func rejectList() (list []Entry) {
	for n := wire.RejectReason(1); n <= wire.RejVendorUnsupported; n++ {
		text := n.String()
		if text == fmt.Sprintf("reason %d", n) {
			continue
		}
		a := rejects[n]
		if a.look == nil {
			a.look = []string{"REQ and REJ in rdmashim dump"}
		}
		if a.causes == nil {
			a.causes = []string{}
		}
		list = append(list, Entry{Kind: Reject, Name: abi.UCMRejReason(n).String(), Number: int(n), Also: []string{"REJ " + text, text},
			Means: "the peer rejected the connection: " + text, Causes: a.causes, Look: a.look})
	}
	return list
}
