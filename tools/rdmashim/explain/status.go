package explain

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/uapi"
)

// advice is what is known beyond a first sentence.
type advice struct {
	also   []string
	causes []string
	look   []string
}

// statuses goes with uapi's explanations. The first other name of each is the
// text of ibv_wc_status_str, which programs of rdma-core print.
var statuses = map[abi.WCStatus]advice{
	abi.WCSuccess: {[]string{"success"},
		[]string{"nothing is wrong: of a send, WRITE or atomic the peer's device has acknowledged it; of a READ or receive the data is in the buffer"},
		[]string{"a WRITE's success says that the memory was written, not that the peer's program has looked"}},
	abi.WCLocLenErr: {[]string{"local length error"},
		[]string{"a SEND arrived that is longer than the buffers of the posted receive", "a message is longer than the port's maximum (1 GiB or 2 GiB)", "a datagram's receive lacks the 40 bytes in front for the GRH"},
		[]string{"the lengths that both programs agreed on", "the sge list of the receive", "the sender sees REM_INV_REQ_ERR, of rdma_rxe REM_OP_ERR"}},
	abi.WCLocQPOpErr: {[]string{"local QP operation error"},
		[]string{"more scatter/gather elements or inline bytes than the queue pair was made for", "an operation that the queue pair's type does not have (READ on UC)", "a READ or atomic on a connection whose peer offered to answer none", "rdma_rxe: a local key that does not belong to the memory; others say LOC_PROT_ERR"},
		[]string{"sge count, lkey and address of the work request with this id", "max_rd_atomic of the queue pair: 0 when the peer's responder_resources were 0", "the type of the queue pair: rdmashim resource show qp"}},
	abi.WCLocEECOpErr: {[]string{"local EE context operation error"},
		[]string{"of reliable datagrams, which no device of today has"}, []string{"whether the number was read from the right field"}},
	abi.WCLocProtErr: {[]string{"local protection error"},
		[]string{"the lkey is that of a region that was deregistered, or of another protection domain", "address and length reach over the region's end", "a receive or READ goes into a region without AccessLocalWrite"},
		[]string{"addr, length and lkey of the work request against the region", "whether the region was deregistered while work was outstanding", "rdmashim resource show mr"}},
	abi.WCWRFlushErr: {[]string{"Work Request Flushed Error", "flushed"},
		[]string{"an earlier request of the same queue pair failed, and this one was given back undone", "the queue pair was moved to ERR, destroyed, or the connection was ended by one of both sides", "the program posted on after an error"},
		[]string{"the first completion of this queue pair that is neither SUCCESS nor WR_FLUSH_ERR: that one has the cause", "the send and the receive queue may have different completion queues: look into both", "whether the peer disconnected: its event, or DREQ in 'rdmashim dump'"}},
	abi.WCMWBindErr: {[]string{"memory management operation error"},
		[]string{"a memory window was bound to a region without the right for it, or beyond its end", "fast registration of pages that the device refuses"},
		[]string{"access of the region (MW_BIND) and of the window"}},
	abi.WCBadRespErr: {[]string{"bad response error"},
		[]string{"an answer of the wrong kind, length or sequence: the peer's implementation is wrong", "packets of an old life of the connection: numbers used again too soon"},
		[]string{"the answer: rdmashim dump --explain --qpn N", "versions of the drivers at both ends"}},
	abi.WCLocAccessErr: {[]string{"local access error"},
		[]string{"a WRITE with immediate came whose key or range this side's memory does not allow"},
		[]string{"the region that the peer was told of", "the peer sees REM_ACCESS_ERR"}},
	abi.WCRemInvReqErr: {[]string{"remote invalid request error"},
		[]string{"a SEND was longer than the peer's receive", "the peer's queue pair does not allow the operation: qp_access_flags lacks remote READ, WRITE or atomic", "an atomic on an address that is not a multiple of 8", "more READs or atomics outstanding than the peer's max_dest_rd_atomic", "the path MTUs of both ends differ"},
		[]string{"the peer's receive size", "the peer's access flags, given at INIT: not the same as those of the region", "max_rd_atomic here against max_dest_rd_atomic there", "NAK invalid request in rdmashim dump --explain"}},
	abi.WCRemAccessErr: {[]string{"remote access error"},
		[]string{"the rkey is wrong, stale, or of another protection domain at the peer", "address and length reach outside of the peer's region", "the region lacks remote write, read or atomic rights", "byte order: keys and addresses that were exchanged in another order than they are read"},
		[]string{"addr, rkey and length that the peer sent, printed at both ends in hexadecimal", "access flags of the peer's region", "whether the peer deregistered it", "the key in the packet: rdmashim dump, 'reth va … rkey …'"}},
	abi.WCRemOpErr: {[]string{"remote operation error"},
		[]string{"the peer's own work request was wrong, such as a receive with a bad lkey", "rdma_rxe: also a SEND that is longer than the receive", "the peer's queue pair went to the error state for a reason of its own"},
		[]string{"the peer's completions: one of them has the cause", "NAK remote operational error in rdmashim dump"}},
	abi.WCRetryExcErr: {[]string{"transport retry counter exceeded"},
		[]string{"the peer's process or machine is gone", "its queue pair is not in RTR or RTS yet, or has another number than was told", "packets do not arrive: UDP 4791 filtered, wrong GID index, no route, an MTU on the path below the queue pair's", "loss so heavy that all retries were lost", "the ACK timeout is shorter than the path is long (timeout 0 waits for ever)"},
		[]string{"rdmashim doctor", "on the peer: rdmashim dump --live IFACE --qpn N: do requests arrive? do ACKs leave?", "dest_qp_num, GID index and path MTU of both ends", "firewall and NAT for UDP 4791 in both directions", "timeout and retry_cnt: rdmashim explain timeout 14"}},
	abi.WCRNRRetryExcErr: {[]string{"RNR retry counter exceeded"},
		[]string{"the peer posts no receives, or too few for the rate of SENDs and WRITEs with immediate", "rnr_retry is small: 0 fails at the first, 7 repeats for ever", "the peer's min_rnr_timer is so short that all retries are over before it posts"},
		[]string{"the peer: receives are to be posted before it tells that it is ready, and again after each completion", "rnr_retry here and min_rnr_timer there (rdmashim explain timer)", "RNR NAKs in rdmashim dump --explain"}},
	abi.WCLocRDDViolErr: {[]string{"local RDD violation error"},
		[]string{"of reliable datagrams, which no device of today has"}, []string{"whether the number was read from the right field"}},
	abi.WCRemInvRDReqErr: {[]string{"remote invalid RD request"},
		[]string{"of reliable datagrams, which no device of today has"}, []string{"whether the number was read from the right field"}},
	abi.WCRemAbortErr: {[]string{"aborted error"},
		[]string{"the peer gave the operation up; some devices say so when their queue pair is reset under traffic"},
		[]string{"what the peer's program did at that time"}},
	abi.WCInvEECNErr: {[]string{"invalid EE context number"},
		[]string{"of reliable datagrams, which no device of today has"}, []string{"whether the number was read from the right field"}},
	abi.WCInvEECStateErr: {[]string{"invalid EE context state"},
		[]string{"of reliable datagrams, which no device of today has"}, []string{"whether the number was read from the right field"}},
	abi.WCFatalErr: {[]string{"fatal error"},
		[]string{"the device failed or was taken away"},
		[]string{"dmesg", "rdmashim monitor, for the device's event", "whether the device is still there: rdmashim devices"}},
	abi.WCRespTimeoutErr: {[]string{"response timeout error"},
		[]string{"the peer accepted a request and did not answer it in time"},
		[]string{"the load of the peer", "the same as for RETRY_EXC_ERR"}},
	abi.WCGeneralErr: {[]string{"general error"},
		[]string{"the driver has no better word; its vendor_err has more"},
		[]string{"vendor_err of the completion, in the driver's documentation", "dmesg"}},
}

func statusList() (list []Entry) {
	for s := abi.WCSuccess; s <= abi.WCGeneralErr; s++ {
		a := statuses[s]
		list = append(list, Entry{
			Kind: Status, Name: s.String(), Number: int(s),
			Also:  append([]string{"IBV_WC_" + s.String()}, a.also...),
			Means: uapi.Status(s).Explanation(), Causes: a.causes, Look: a.look,
		})
	}
	return list
}
