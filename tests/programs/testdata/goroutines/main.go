// Command goroutines uses libibverbs by cgo: goroutines with a queue pair each
// wait for its events, while others keep the processors busy and the collector
// runs, so that the runtime sends signals.
package main

/*
#cgo LDFLAGS: -libverbs
#include "../loop.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

const (
	loops = 8
	turns = 100
)

func main() {
	device := C.device()
	done := make(chan struct{})
	var busy, users sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for kept := [][]byte{}; ; kept = append(kept, make([]byte, 1<<10)) {
				select {
				case <-done:
					return
				default:
				}
				if len(kept) == 1<<10 {
					kept = nil
				}
			}
		})
	}
	for range loops {
		users.Go(func() {
			l := (*C.struct_loop)(C.calloc(1, C.sizeof_struct_loop))
			C.loop_open(l, device)
			for range turns {
				C.loop_turn(l)
				runtime.Gosched()
			}
			C.loop_close(l)
			C.free(unsafe.Pointer(l))
		})
	}
	users.Wait()
	close(done)
	busy.Wait()
	fmt.Println("closed:", C.ibv_close_device(device))
}
