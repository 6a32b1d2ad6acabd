package emu

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// queryRoute answers addresses and the path record in one; before the route is
// resolved, the GIDs of the addresses (ucma.c: ucma_copy_iboe_route).
func (c *ucmCall) queryRoute() error {
	var req abi.UCMQuery
	_ = req.Parse(c.in)
	return c.with(req.ID, func(id *ucmID) error {
		var resp abi.UCMQueryRouteResp
		src, _, dst, _ := id.addresses()
		resp.SrcAddr, resp.DstAddr = src.In6(), dst.In6()
		if id.dev != nil {
			resp.NodeGUID, resp.PortNum, resp.IBDevIndex = id.dev.attr.NodeGUID, 1, uint32(id.dev.index)
			if id.routed() {
				resp.NumPaths = 1
				routeOf(resp.IBRoute[:], id.pathRecord())
			} else {
				id.guessRoute(resp.IBRoute[:])
			}
		}
		return c.answer(req.Response, &resp, abi.UCMQueryRouteRespSize)
	})
}

// routeOf spreads a path record of the wire out into struct ib_user_path_rec
// (uverbs_marshall.c: ib_copy_path_rec_to_user).
func routeOf(r []byte, rec [64]byte) {
	copy(r[abi.UCMRouteDGID:], rec[8:24])
	copy(r[abi.UCMRouteSGID:], rec[24:40])
	binary.BigEndian.PutUint32(r[abi.UCMRouteFlowLabel:], binary.BigEndian.Uint32(rec[44:])>>8&0xfffff)
	r[abi.UCMRouteHopLimit], r[abi.UCMRouteTrafficClass] = rec[47], rec[48]
	r[abi.UCMRouteReversible], r[abi.UCMRouteNumbPath] = rec[49]>>7, rec[49]&0x7f
	r[abi.UCMRouteSL], r[abi.UCMRoutePreference] = rec[53]&0xf, rec[57]
	copy(r[abi.UCMRoutePkey:][:2], rec[50:])
	for i, at := range [][2]int{
		{abi.UCMRouteMTUSelector, abi.UCMRouteMTU}, {abi.UCMRouteRateSelector, abi.UCMRouteRate},
		{abi.UCMRoutePacketLifeTimeSelector, abi.UCMRoutePacketLifeTime},
	} {
		r[at[0]], r[at[1]] = rec[54+i]>>6, rec[54+i]&0x3f
	}
}

// guessRoute has what is known of a path before the route is resolved.
func (id *ucmID) guessRoute(r []byte) {
	if !isIB(&id.srcIB) {
		src, dst := gid16(id.src), gid16(id.to())
		copy(r[abi.UCMRouteSGID:], src[:])
		copy(r[abi.UCMRouteDGID:], dst[:])
	}
	binary.BigEndian.PutUint16(r[abi.UCMRoutePkey:], 0xffff)
}
