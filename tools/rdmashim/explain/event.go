package explain

import "github.com/rdmashim/rdmashim/kshim/abi"

// told is an event that something tells of.
type told struct {
	means        string
	causes, look []string
}

// events are asynchronous events of a device (IBA 11.6.3).
var events = map[abi.EventType]told{
	abi.EventCQErr: {"a completion queue overran: completions were lost, and its queue pairs are of no use any more",
		[]string{"the queue is smaller than the work that can be outstanding", "completions are polled too late"},
		[]string{"the CQ's size against the sum of send and receive queues that complete into it"}},
	abi.EventQPFatal: {"a queue pair failed in a way that no completion tells",
		[]string{"the device could not write a completion, or failed itself"}, []string{"dmesg", "completions before it"}},
	abi.EventQPReqErr: {"the peer sent a request that this queue pair cannot take; it is in the error state",
		[]string{"the operation is not allowed on the queue pair (qp_access_flags), or misaligned, or malformed"},
		[]string{"the peer's completion says REM_INV_REQ_ERR: rdmashim explain REM_INV_REQ_ERR"}},
	abi.EventQPAccessErr: {"the peer sent a request for memory that it may not touch; the queue pair is in the error state",
		[]string{"wrong or stale rkey, a range outside of the region, a right that the region lacks"},
		[]string{"the peer's completion says REM_ACCESS_ERR: rdmashim explain REM_ACCESS_ERR"}},
	abi.EventCommEst: {"the first packet came to a queue pair in RTR: the other side is connected",
		[]string{"nothing is wrong; with rdma_cm the RTU is late or lost"}, []string{"with rdma_cm: rdma_notify, or RTS at once"}},
	abi.EventSQDrained:   {"a send queue that was stopped (SQD) is empty", []string{"the program asked for it"}, []string{}},
	abi.EventPathMig:     {"the connection moved to its alternate path", []string{"the primary path failed, or the program asked for it"}, []string{"the primary path; RoCE has no alternate ones"}},
	abi.EventPathMigErr:  {"the connection could not move to its alternate path", []string{"the alternate path is wrong or not loaded"}, []string{"the alternate path's attributes"}},
	abi.EventDeviceFatal: {"the device failed, or was taken away", []string{"hot removal, reset, or a fault of driver or hardware"}, []string{"dmesg", "close the context and open the device anew: rdmashim devices"}},
	abi.EventPortActive:  {"a port became active", []string{"its network device came up"}, []string{"GIDs may have changed: rdmashim link gid"}},
	abi.EventPortErr:     {"a port went down", []string{"the network device went down, lost its carrier, or was unplugged"}, []string{"ip link show; rdmashim link show", "connections fail only when their retries are used up"}},
	abi.EventLIDChange:   {"the port's LID changed", []string{"a subnet manager; of InfiniBand only"}, []string{}},
	abi.EventPkeyChange:  {"the table of partition keys changed", []string{"a subnet manager; of InfiniBand only"}, []string{"indices that programs keep"}},
	abi.EventSMChange:    {"another subnet manager took over", []string{"of InfiniBand only"}, []string{}},
	abi.EventSRQErr:      {"a shared receive queue failed", []string{"the device failed"}, []string{"dmesg"}},
	abi.EventSRQLimitReached: {"a shared receive queue has fewer receives than its limit", []string{"the program asked to be told"},
		[]string{"post receives and arm the limit anew"}},
	abi.EventQPLastWQEReached: {"a queue pair on a shared receive queue took its last receive", []string{"it went to the error state"}, []string{"it may be destroyed now"}},
	abi.EventClientReregister: {"subscriptions at the subnet manager are to be made anew", []string{"a subnet manager; of InfiniBand only"}, []string{}},
	abi.EventGIDChange:        {"the GID table changed", []string{"an IP address was added to or taken from the network device", "it went up or down, or into another bond or VLAN"}, []string{"rdmashim link gid", "an index kept from before may stand for another address now"}},
	abi.EventWQFatal:          {"a work queue failed", []string{"the device failed"}, []string{"dmesg"}},
}

// cmEvents are events of the connection manager.
var cmEvents = map[abi.UCMEvent]told{
	abi.UCMEventAddrResolved:  {"the address has a device, and the neighbour is known", []string{"nothing is wrong"}, []string{"next comes rdma_resolve_route"}},
	abi.UCMEventAddrError:     {"the address cannot be resolved; its status is an errno", []string{"no route to it, or no RDMA device on the interface of the route", "the neighbour does not answer ARP or neighbour solicitation"}, []string{"ip route get PEER; ip neigh show PEER", "rdmashim doctor"}},
	abi.UCMEventRouteResolved: {"the path is known", []string{"nothing is wrong"}, []string{"next comes rdma_connect"}},
	abi.UCMEventRouteError:    {"the path to the peer cannot be found; its status is an errno", []string{"the device or its GID went away", "a subnet manager does not answer, on InfiniBand"}, []string{"GID table: rdmashim link gid"}},
	abi.UCMEventConnectRequest: {"somebody asks for a connection", []string{"nothing is wrong"},
		[]string{"rdma_accept or rdma_reject: who waits too long is given up"}},
	abi.UCMEventConnectResponse: {"the peer accepted, and the program is to finish by itself", []string{"the id has no queue pair of rdma_cm's own"}, []string{"the queue pair to RTS, then rdma_establish"}},
	abi.UCMEventConnectError:    {"the connection cannot be made; its status is an errno", []string{"the queue pair could not be moved to RTR or RTS", "messages were lost when the connection was half made"}, []string{"the status: rdmashim explain errno N", "attributes of both sides: path MTU, READ depths"}},
	abi.UCMEventUnreachable: {"the peer did not answer the request, until all repeats were over; the status is an errno",
		[]string{"no RDMA device at that address: rdma_rxe not loaded, or on another interface", "UDP 4791 filtered, in one direction too", "the peer's program does not accept in time"},
		[]string{"rdmashim doctor", "REQ and REP on both ends: rdmashim dump --live IFACE --opcode cm"}},
	abi.UCMEventRejected: {"the peer refused; the status is the reason", []string{"nobody listens on the port (8)", "its program refused (28)"},
		[]string{"rdmashim explain reject N"}},
	abi.UCMEventEstablished:    {"the connection stands", []string{"nothing is wrong"}, []string{}},
	abi.UCMEventDisconnected:   {"the connection ended", []string{"a side disconnected, or its process ended"}, []string{"the first completion that is no WR_FLUSH_ERR, where the program did not mean it"}},
	abi.UCMEventDeviceRemoval:  {"the device goes away", []string{"its driver or link is being taken away"}, []string{"destroy what uses it: it waits for that"}},
	abi.UCMEventMulticastJoin:  {"a multicast group was joined", []string{"nothing is wrong"}, []string{}},
	abi.UCMEventMulticastError: {"a multicast group could not be joined, or was left", []string{"the device has no multicast, or the network no querier"}, []string{"the status: rdmashim explain errno N"}},
	abi.UCMEventAddrChange:     {"the network device of the address has another hardware address", []string{"a bond failed over"}, []string{"connections over it may be dead: connect anew"}},
	abi.UCMEventTimewaitExit:   {"the connection's numbers may be used again", []string{"nothing is wrong: it ended some time before"}, []string{}},
}

func eventList() (list []Entry) {
	for n := abi.EventCQErr; n <= abi.EventWQFatal; n++ {
		list = append(list, events[n].entry(Event, int(n), n.String(), "IBV_EVENT_"))
	}
	return list
}

func cmEventList() (list []Entry) {
	for n := abi.UCMEventAddrResolved; n <= abi.UCMEventTimewaitExit; n++ {
		list = append(list, cmEvents[n].entry(CMEvent, int(n), n.String(), "RDMA_CM_EVENT_"))
	}
	return list
}

func (x told) entry(k Kind, n int, name, prefix string) Entry {
	return Entry{Kind: k, Name: name, Number: n, Also: []string{prefix + name}, Means: x.means, Causes: x.causes, Look: x.look}
}
