package wire

import "fmt"

// RejectReason says why a REJ was sent (IBA 12.6.7.2).
type RejectReason uint16

const (
	RejNoQP              RejectReason = 1
	RejNoEEC             RejectReason = 2
	RejNoResources       RejectReason = 3
	RejTimeout           RejectReason = 4
	RejUnsupported       RejectReason = 5
	RejInvalidCommID     RejectReason = 6
	RejInvalidInstance   RejectReason = 7
	RejInvalidServiceID  RejectReason = 8
	RejInvalidService    RejectReason = 9
	RejStaleConn         RejectReason = 10
	RejRDCNotExist       RejectReason = 11
	RejInvalidGID        RejectReason = 12
	RejInvalidLID        RejectReason = 13
	RejInvalidSL         RejectReason = 14
	RejInvalidClass      RejectReason = 15
	RejInvalidHopLimit   RejectReason = 16
	RejInvalidRate       RejectReason = 17
	RejInvalidAltGID     RejectReason = 18
	RejInvalidAltLID     RejectReason = 19
	RejInvalidAltSL      RejectReason = 20
	RejInvalidAltClass   RejectReason = 21
	RejInvalidAltHops    RejectReason = 22
	RejInvalidAltRate    RejectReason = 23
	RejPortCMRedirect    RejectReason = 24
	RejPortRedirect      RejectReason = 25
	RejInvalidMTU        RejectReason = 26
	RejFewResources      RejectReason = 27
	RejConsumer          RejectReason = 28
	RejInvalidRNRRetry   RejectReason = 29
	RejDuplicateCommID   RejectReason = 30
	RejInvalidVersion    RejectReason = 31
	RejInvalidFlowLabel  RejectReason = 32
	RejInvalidAltLabel   RejectReason = 33
	RejVendorUnsupported RejectReason = 35
)

var rejectText = [...]string{
	RejNoQP:              "no queue pair available",
	RejNoEEC:             "no end-to-end context available",
	RejNoResources:       "no resources available",
	RejTimeout:           "timeout",
	RejUnsupported:       "unsupported request",
	RejInvalidCommID:     "invalid communication id",
	RejInvalidInstance:   "invalid communication instance",
	RejInvalidServiceID:  "invalid service id",
	RejInvalidService:    "invalid transport service type",
	RejStaleConn:         "stale connection",
	RejRDCNotExist:       "reliable datagram channel does not exist",
	RejInvalidGID:        "primary remote port GID rejected",
	RejInvalidLID:        "primary remote port LID rejected",
	RejInvalidSL:         "invalid primary SL",
	RejInvalidClass:      "invalid primary traffic class",
	RejInvalidHopLimit:   "invalid primary hop limit",
	RejInvalidRate:       "invalid primary packet rate",
	RejInvalidAltGID:     "alternate remote port GID rejected",
	RejInvalidAltLID:     "alternate remote port LID rejected",
	RejInvalidAltSL:      "invalid alternate SL",
	RejInvalidAltClass:   "invalid alternate traffic class",
	RejInvalidAltHops:    "invalid alternate hop limit",
	RejInvalidAltRate:    "invalid alternate packet rate",
	RejPortCMRedirect:    "port and CM redirection",
	RejPortRedirect:      "port redirection",
	RejInvalidMTU:        "invalid path MTU",
	RejFewResources:      "insufficient responder resources",
	RejConsumer:          "consumer reject",
	RejInvalidRNRRetry:   "RNR retry count rejected",
	RejDuplicateCommID:   "duplicate local communication id",
	RejInvalidVersion:    "unsupported class version",
	RejInvalidFlowLabel:  "invalid primary flow label",
	RejInvalidAltLabel:   "invalid alternate flow label",
	RejVendorUnsupported: "vendor option is not supported",
}

// String returns the specification's words, or the number.
func (r RejectReason) String() string {
	if int(r) < len(rejectText) && rejectText[r] != "" {
		return rejectText[r]
	}
	return fmt.Sprintf("reason %d", uint16(r))
}
