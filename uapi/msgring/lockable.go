package msgring

import (
	"log/slog"
	"sync"

	"github.com/rdmashim/rdmashim/uapi"
)

// littleLockable is the limit in bytes below which rings are made smaller.
const littleLockable = 64 << 20

var saidLittle sync.Once

// defaultRing is the length of a ring of a connection on a device of that kind.
// A kernel locks the memory that is registered on its devices. lockable returns
// how many bytes the process may lock, or -1.
func defaultRing(mode Mode, kind uapi.Kind, lockable func() int64, log *slog.Logger) int {
	switch {
	case kind != uapi.KindHost && mode == Bytes:
		return DefaultRing
	case kind != uapi.KindHost:
		return LesserRing
	}
	limit := lockable()
	if limit < 0 || limit >= littleLockable {
		return LesserRing
	}
	if log != nil {
		saidLittle.Do(func() {
			log.Warn("message rings are smaller, because this process may lock little memory: raise 'ulimit -l', or set Config.Ring", "ring", LittleRing, "ulimit", limit)
		})
	}
	return LittleRing
}
