package doctor

import (
	"encoding/binary"
	"errors"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Numbers of ethtool_netlink.h, which Linux has from 5.7 on.
const (
	ethtoolFeaturesGet   = 11
	ethtoolVersion       = 1
	attrFeaturesHeader   = 1
	attrFeaturesActive   = 4
	attrHeaderDevName    = 2
	attrBitsetBits       = 3
	attrBitsetBitName    = 2
	attrBitsetBitValue   = 3
	genericNetlinkHeader = 4
)

// features asks for a network device's offloads that are active.
func features(netdev string) (map[string]bool, error) {
	family, err := netlink.GenlFamilyGet("ethtool")
	if err != nil {
		return nil, err
	}
	req := nl.NewNetlinkRequest(int(family.ID), 0)
	req.AddData(&nl.Genlmsg{Command: ethtoolFeaturesGet, Version: ethtoolVersion})
	header := nl.NewRtAttr(attrFeaturesHeader|unix.NLA_F_NESTED, nil)
	header.AddRtAttr(attrHeaderDevName, nl.ZeroTerminated(netdev))
	req.AddData(header)
	answers, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return nil, err
	}
	if len(answers) == 0 || len(answers[0]) < genericNetlinkHeader {
		return nil, errors.New("no answer")
	}
	return parseFeatures(answers[0][genericNetlinkHeader:]), nil
}

// netlinkAttrs calls f for each attribute of a message; what is cut short ends
// it.
func netlinkAttrs(b []byte, f func(kind uint16, value []byte)) {
	for len(b) >= 4 {
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			return
		}
		f(binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), b[4:n])
		b = b[min((n+3)&^3, len(b)):]
	}
}

// parseFeatures takes the names of the active offloads out of an answer. Its
// bitsets are lists of names; one that has a mask says of each whether it is set.
func parseFeatures(b []byte) map[string]bool {
	on := map[string]bool{}
	netlinkAttrs(b, func(kind uint16, value []byte) {
		if kind != attrFeaturesActive {
			return
		}
		noMask := false
		netlinkAttrs(value, func(kind uint16, bits []byte) {
			if kind == 1 {
				noMask = true
			}
			if kind != attrBitsetBits {
				return
			}
			netlinkAttrs(bits, func(_ uint16, bit []byte) {
				name, set := "", noMask
				netlinkAttrs(bit, func(kind uint16, v []byte) {
					switch kind {
					case attrBitsetBitName:
						name = string(v[:max(len(v)-1, 0)])
					case attrBitsetBitValue:
						set = true
					}
				})
				if set && name != "" {
					on[name] = true
				}
			})
		})
	})
	return on
}
