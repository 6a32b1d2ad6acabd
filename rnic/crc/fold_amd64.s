#include "textflag.h"

// Constants to fold over D bits: x^(D+32) and x^(D-32), reflected, one bit to
// the left. TestConstants computes them.
DATA over2048<>+0(SB)/8, $0x11542778a
DATA over2048<>+8(SB)/8, $0x1322d1430
GLOBL over2048<>(SB), RODATA, $16
DATA over256<>+0(SB)/8, $0x0f1da05aa
DATA over256<>+8(SB)/8, $0x15a546366
GLOBL over256<>(SB), RODATA, $16
DATA over128<>+0(SB)/8, $0x1751997d0
DATA over128<>+8(SB)/8, $0x0ccaa009e
GLOBL over128<>(SB), RODATA, $16

// FOLD moves the 16-byte lanes of acc over as many bits as the constants in Y0
// say, and adds data. It spoils tmp.
#define FOLD(acc, tmp, data) \
	VPCLMULQDQ $0x11, Y0, acc, tmp \
	VPCLMULQDQ $0x00, Y0, acc, acc \
	VPXOR      tmp, acc, acc       \
	VPXOR      data, acc, acc

// LOAD reads 32 bytes at off. COPY copies them as well.
#define LOAD(off, data) \
	VMOVDQU off(SI), data

#define COPY(off, data) \
	LOAD(off, data) \
	VMOVDQU data, off(DI)

// BEGIN gets the first block into Y1 to Y8, by LOAD or COPY.
#define BEGIN(GET) \
	GET(0, Y1)   \
	GET(32, Y2)  \
	GET(64, Y3)  \
	GET(96, Y4)  \
	GET(128, Y5) \
	GET(160, Y6) \
	GET(192, Y7) \
	GET(224, Y8) \
	VBROADCASTI128 over2048<>(SB), Y0

// TURN gets another block, and adds it.
#define TURN(GET) \
	GET(0, Y10)         \
	FOLD(Y1, Y9, Y10)   \
	GET(32, Y12)        \
	FOLD(Y2, Y11, Y12)  \
	GET(64, Y14)        \
	FOLD(Y3, Y13, Y14)  \
	GET(96, Y10)        \
	FOLD(Y4, Y9, Y10)   \
	GET(128, Y12)       \
	FOLD(Y5, Y11, Y12)  \
	GET(160, Y14)       \
	FOLD(Y6, Y13, Y14)  \
	GET(192, Y10)       \
	FOLD(Y7, Y9, Y10)   \
	GET(224, Y12)       \
	FOLD(Y8, Y11, Y12)

// END returns the lane that Y1 to Y8 make.
#define END \
	VBROADCASTI128 over256<>(SB), Y0 \
	FOLD(Y1, Y9, Y2)                 \
	FOLD(Y1, Y9, Y3)                 \
	FOLD(Y1, Y9, Y4)                 \
	FOLD(Y1, Y9, Y5)                 \
	FOLD(Y1, Y9, Y6)                 \
	FOLD(Y1, Y9, Y7)                 \
	FOLD(Y1, Y9, Y8)                 \
	VEXTRACTI128 $1, Y1, X2          \
	VMOVDQU    over128<>(SB), X0     \
	VPCLMULQDQ $0x11, X0, X1, X9     \
	VPCLMULQDQ $0x00, X0, X1, X1     \
	VPXOR      X9, X1, X1            \
	VPXOR      X2, X1, X1            \
	VZEROUPPER                       \
	MOVQ   X1, lo+24(FP)             \
	PEXTRQ $1, X1, hi+32(FP)         \
	RET

// func fold(p *byte, n int, r uint32) (lo, hi uint64)
TEXT ·fold(SB), NOSPLIT, $0-40
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVL r+16(FP), AX
	VMOVD AX, X9
	BEGIN(LOAD)
	VPXOR Y9, Y1, Y1
	JMP next
turn:
	TURN(LOAD)
next:
	ADDQ $256, SI
	SUBQ $256, CX
	JNZ  turn
	END

// func foldCopy(dst, src *byte, n int) (lo, hi uint64)
TEXT ·foldCopy(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	BEGIN(COPY)
	JMP next
turn:
	TURN(COPY)
next:
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	JNZ  turn
	END

// func clmul(a, b uint32) uint64
TEXT ·clmul(SB), NOSPLIT, $0-16
	MOVL a+0(FP), X0
	MOVL b+4(FP), X1
	PCLMULQDQ $0, X1, X0
	MOVQ X0, ret+8(FP)
	RET

// func multipliesWide() bool
TEXT ·multipliesWide(SB), NOSPLIT, $0-1
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $10, CX
	ANDL $1, CX
	MOVB CX, ret+0(FP)
	RET
