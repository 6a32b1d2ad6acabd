package abi

// UCMEvent is the kind of an event of rdma_cm: enum rdma_cm_event_type (include/rdma/rdma_cm.h).
type UCMEvent uint32

const (
	UCMEventAddrResolved    UCMEvent = 0
	UCMEventAddrError       UCMEvent = 1
	UCMEventRouteResolved   UCMEvent = 2
	UCMEventRouteError      UCMEvent = 3
	UCMEventConnectRequest  UCMEvent = 4
	UCMEventConnectResponse UCMEvent = 5
	UCMEventConnectError    UCMEvent = 6
	UCMEventUnreachable     UCMEvent = 7
	UCMEventRejected        UCMEvent = 8
	UCMEventEstablished     UCMEvent = 9
	UCMEventDisconnected    UCMEvent = 10
	UCMEventDeviceRemoval   UCMEvent = 11
	UCMEventMulticastJoin   UCMEvent = 12
	UCMEventMulticastError  UCMEvent = 13
	UCMEventAddrChange      UCMEvent = 14
	UCMEventTimewaitExit    UCMEvent = 15
)

var ucmEventNames = map[UCMEvent]string{
	UCMEventAddrResolved:    "ADDR_RESOLVED",
	UCMEventAddrError:       "ADDR_ERROR",
	UCMEventRouteResolved:   "ROUTE_RESOLVED",
	UCMEventRouteError:      "ROUTE_ERROR",
	UCMEventConnectRequest:  "CONNECT_REQUEST",
	UCMEventConnectResponse: "CONNECT_RESPONSE",
	UCMEventConnectError:    "CONNECT_ERROR",
	UCMEventUnreachable:     "UNREACHABLE",
	UCMEventRejected:        "REJECTED",
	UCMEventEstablished:     "ESTABLISHED",
	UCMEventDisconnected:    "DISCONNECTED",
	UCMEventDeviceRemoval:   "DEVICE_REMOVAL",
	UCMEventMulticastJoin:   "MULTICAST_JOIN",
	UCMEventMulticastError:  "MULTICAST_ERROR",
	UCMEventAddrChange:      "ADDR_CHANGE",
	UCMEventTimewaitExit:    "TIMEWAIT_EXIT",
}

// String gives the kernel's name without its prefix, or UCMEvent(n).
func (v UCMEvent) String() string { return enumString(ucmEventNames, v, "UCMEvent") }

// UCMRejReason is why a connection was rejected: enum ib_cm_rej_reason (include/rdma/ib_cm.h; IBA vol. 1, 12.6.7.2).
type UCMRejReason uint16

const (
	UCMRejNoQP                      UCMRejReason = 1
	UCMRejNoEEC                     UCMRejReason = 2
	UCMRejNoResources               UCMRejReason = 3
	UCMRejTimeout                   UCMRejReason = 4
	UCMRejUnsupported               UCMRejReason = 5
	UCMRejInvalidCommID             UCMRejReason = 6
	UCMRejInvalidCommInstance       UCMRejReason = 7
	UCMRejInvalidServiceID          UCMRejReason = 8 // nobody listens there
	UCMRejInvalidTransportType      UCMRejReason = 9
	UCMRejStaleConn                 UCMRejReason = 10
	UCMRejRDCNotExist               UCMRejReason = 11
	UCMRejInvalidGID                UCMRejReason = 12
	UCMRejInvalidLID                UCMRejReason = 13
	UCMRejInvalidSL                 UCMRejReason = 14
	UCMRejInvalidTrafficClass       UCMRejReason = 15
	UCMRejInvalidHopLimit           UCMRejReason = 16
	UCMRejInvalidPacketRate         UCMRejReason = 17
	UCMRejInvalidAltGID             UCMRejReason = 18
	UCMRejInvalidAltLID             UCMRejReason = 19
	UCMRejInvalidAltSL              UCMRejReason = 20
	UCMRejInvalidAltTrafficClass    UCMRejReason = 21
	UCMRejInvalidAltHopLimit        UCMRejReason = 22
	UCMRejInvalidAltPacketRate      UCMRejReason = 23
	UCMRejPortCMRedirect            UCMRejReason = 24
	UCMRejPortRedirect              UCMRejReason = 25
	UCMRejInvalidMTU                UCMRejReason = 26
	UCMRejInsufficientRespResources UCMRejReason = 27
	UCMRejConsumerDefined           UCMRejReason = 28 // the program's own; its private data says more
	UCMRejInvalidRNRRetry           UCMRejReason = 29
	UCMRejDuplicateLocalCommID      UCMRejReason = 30
	UCMRejInvalidClassVersion       UCMRejReason = 31
	UCMRejInvalidFlowLabel          UCMRejReason = 32
	UCMRejInvalidAltFlowLabel       UCMRejReason = 33
	UCMRejVendorOptionNotSupported  UCMRejReason = 35
)

var ucmRejReasonNames = map[UCMRejReason]string{
	UCMRejNoQP:                      "NO_QP",
	UCMRejNoEEC:                     "NO_EEC",
	UCMRejNoResources:               "NO_RESOURCES",
	UCMRejTimeout:                   "TIMEOUT",
	UCMRejUnsupported:               "UNSUPPORTED",
	UCMRejInvalidCommID:             "INVALID_COMM_ID",
	UCMRejInvalidCommInstance:       "INVALID_COMM_INSTANCE",
	UCMRejInvalidServiceID:          "INVALID_SERVICE_ID",
	UCMRejInvalidTransportType:      "INVALID_TRANSPORT_TYPE",
	UCMRejStaleConn:                 "STALE_CONN",
	UCMRejRDCNotExist:               "RDC_NOT_EXIST",
	UCMRejInvalidGID:                "INVALID_GID",
	UCMRejInvalidLID:                "INVALID_LID",
	UCMRejInvalidSL:                 "INVALID_SL",
	UCMRejInvalidTrafficClass:       "INVALID_TRAFFIC_CLASS",
	UCMRejInvalidHopLimit:           "INVALID_HOP_LIMIT",
	UCMRejInvalidPacketRate:         "INVALID_PACKET_RATE",
	UCMRejInvalidAltGID:             "INVALID_ALT_GID",
	UCMRejInvalidAltLID:             "INVALID_ALT_LID",
	UCMRejInvalidAltSL:              "INVALID_ALT_SL",
	UCMRejInvalidAltTrafficClass:    "INVALID_ALT_TRAFFIC_CLASS",
	UCMRejInvalidAltHopLimit:        "INVALID_ALT_HOP_LIMIT",
	UCMRejInvalidAltPacketRate:      "INVALID_ALT_PACKET_RATE",
	UCMRejPortCMRedirect:            "PORT_CM_REDIRECT",
	UCMRejPortRedirect:              "PORT_REDIRECT",
	UCMRejInvalidMTU:                "INVALID_MTU",
	UCMRejInsufficientRespResources: "INSUFFICIENT_RESP_RESOURCES",
	UCMRejConsumerDefined:           "CONSUMER_DEFINED",
	UCMRejInvalidRNRRetry:           "INVALID_RNR_RETRY",
	UCMRejDuplicateLocalCommID:      "DUPLICATE_LOCAL_COMM_ID",
	UCMRejInvalidClassVersion:       "INVALID_CLASS_VERSION",
	UCMRejInvalidFlowLabel:          "INVALID_FLOW_LABEL",
	UCMRejInvalidAltFlowLabel:       "INVALID_ALT_FLOW_LABEL",
	UCMRejVendorOptionNotSupported:  "VENDOR_OPTION_NOT_SUPPORTED",
}

// String gives the kernel's name without its prefix, or UCMRejReason(n).
func (v UCMRejReason) String() string { return enumString(ucmRejReasonNames, v, "UCMRejReason") }
