package msgring

import (
	"log/slog"
	"sync"

	"github.com/rdmashim/rdmashim/uapi"
)

// littleLockable is the limit in bytes below which rings are made smaller.
const littleLockable = 64 << 20

var saidLittle sync.Once

// defaultRing is the length of a ring on a device of that kind. A kernel locks
// the memory that is registered on its devices. lockable returns how many bytes
// the process may lock, or -1.
func defaultRing(kind uapi.Kind, lockable func() int64, log *slog.Logger) int {
	if kind != uapi.KindHost {
		return DefaultRing
	}
	limit := lockable()
	if limit < 0 || limit >= littleLockable {
		return DefaultRing
	}
	if log != nil {
		saidLittle.Do(func() {
			log.Warn("message rings are smaller, because this process may lock little memory: raise 'ulimit -l', or set Config.Ring", "ring", LittleRing, "ulimit", limit)
		})
	}
	return LittleRing
}
