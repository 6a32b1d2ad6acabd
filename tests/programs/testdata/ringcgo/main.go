// Command ringcgo is ring.c in Go, with libibverbs by cgo.
package main

/*
#cgo LDFLAGS: -libverbs
#include "../ring.h"
*/
import "C"

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"unsafe"
)

func main() {
	turns, _ := strconv.Atoi(os.Args[2])
	r := (*C.struct_ring)(C.calloc(1, C.sizeof_struct_ring))
	C.ring_open(r)
	fmt.Printf("ready\n%d 0 %d 0\n", r.left.qp_num, r.right.qp_num)
	var left, right [2]C.uint32_t
	fmt.Scanln(&left[0], &left[1], &right[0], &right[1])
	C.loop_join(r.left, left[0], left[1])
	C.loop_join(r.right, right[0], right[1])
	fmt.Println("joined")
	fmt.Scanln()
	var text [64]byte
	for i := range turns {
		name, _, _ := bytes.Cut(text[:], []byte{0})
		if i%4 == 0 {
			text, name = [64]byte{}, nil
		}
		copy(text[len(name):], os.Args[1])
		C.ring_turn(r, (*C.char)(unsafe.Pointer(&text[0])))
	}
	fmt.Printf("%s\n", bytes.TrimRight(text[:], "\x00"))
	C.ring_close(r)
	C.free(unsafe.Pointer(r))
}
