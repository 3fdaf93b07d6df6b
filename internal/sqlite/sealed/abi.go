package sealed

import (
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// How the port calls C: pointers are uintptrs, and a pointer to a function is one to a Go function's code. All pointers here
// lead to memory of the port's own allocator or to package variables, which the collector does not move.

// at is what a pointer leads to. Inlined into a copy of known length it crashes the compiler (Go 1.26: disjointTypes).
//
//go:noinline
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) } //nolint:gosec // see above

// bytesAt are bytes that a pointer leads to.
func bytesAt(p uintptr, n int) []byte { return unsafe.Slice(at[byte](p), n) } //nolint:gosec // see above

// function is the Go function that a C pointer means.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ p uintptr }{p})) } //nolint:gosec // see above

// pointer is the C pointer that means a Go function, which must not be a closure.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) } //nolint:gosec // see above

type (
	onFile      = func(*libc.TLS, uintptr) int32
	withNumber  = func(*libc.TLS, uintptr, int32) int32
	withPointer = func(*libc.TLS, uintptr, uintptr) int32
	withSize    = func(*libc.TLS, uintptr, int64) int32
	transfer    = func(*libc.TLS, uintptr, uintptr, int32, int64) int32
	control     = func(*libc.TLS, uintptr, int32, uintptr) int32
	shmMap      = func(*libc.TLS, uintptr, int32, int32, int32, uintptr) int32
	shmLock     = func(*libc.TLS, uintptr, int32, int32, int32) int32
	shmBarrier  = func(*libc.TLS, uintptr)
	opening     = func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32
)

// realAt is the offset of the operating system's file in our file structure, aligned for any content.
const realAt = 16

// below is the file of the system, and its methods.
func below(file uintptr) (uintptr, *sqlite3.Tsqlite3_io_methods) {
	r := file + realAt
	return r, at[sqlite3.Tsqlite3_io_methods](*at[uintptr](r))
}

// methods are those of all our files. Without the third version's SQLite maps no file into memory.
var methods = sqlite3.Tsqlite3_io_methods{
	FiVersion:               2,
	FxClose:                 pointer[onFile](closeFile),
	FxRead:                  pointer[transfer](read),
	FxWrite:                 pointer[transfer](write),
	FxTruncate:              pointer[withSize](truncate),
	FxSync:                  pointer[withNumber](synchronise),
	FxFileSize:              pointer[withPointer](fileSize),
	FxLock:                  pointer[withNumber](lock),
	FxUnlock:                pointer[withNumber](unlock),
	FxCheckReservedLock:     pointer[withPointer](checkReservedLock),
	FxFileControl:           pointer[control](fileControl),
	FxSectorSize:            pointer[onFile](sectorSize),
	FxDeviceCharacteristics: pointer[onFile](deviceCharacteristics),
	FxShmMap:                pointer[shmMap](mapShared),
	FxShmLock:               pointer[shmLock](lockShared),
	FxShmBarrier:            pointer[shmBarrier](barrier),
	FxShmUnmap:              pointer[withNumber](unmapShared),
}

// What concerns neither contents nor where they are is the system's.

func truncate(tls *libc.TLS, file uintptr, size int64) int32 {
	r, m := below(file)
	return function[withSize](m.FxTruncate)(tls, r, size)
}

func synchronise(tls *libc.TLS, file uintptr, flags int32) int32 {
	r, m := below(file)
	return function[withNumber](m.FxSync)(tls, r, flags)
}

func fileSize(tls *libc.TLS, file, size uintptr) int32 {
	r, m := below(file)
	return function[withPointer](m.FxFileSize)(tls, r, size)
}

func lock(tls *libc.TLS, file uintptr, level int32) int32 {
	r, m := below(file)
	return function[withNumber](m.FxLock)(tls, r, level)
}

func unlock(tls *libc.TLS, file uintptr, level int32) int32 {
	r, m := below(file)
	return function[withNumber](m.FxUnlock)(tls, r, level)
}

func checkReservedLock(tls *libc.TLS, file, result uintptr) int32 {
	r, m := below(file)
	return function[withPointer](m.FxCheckReservedLock)(tls, r, result)
}

func fileControl(tls *libc.TLS, file uintptr, op int32, argument uintptr) int32 {
	r, m := below(file)
	return function[control](m.FxFileControl)(tls, r, op, argument)
}

func sectorSize(tls *libc.TLS, file uintptr) int32 {
	r, m := below(file)
	return function[onFile](m.FxSectorSize)(tls, r)
}

// deviceCharacteristics leaves out what would have SQLite read parts of pages, or write several at once.
func deviceCharacteristics(tls *libc.TLS, file uintptr) int32 {
	const kept = sqlite3.SQLITE_IOCAP_POWERSAFE_OVERWRITE | sqlite3.SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN | sqlite3.SQLITE_IOCAP_IMMUTABLE |
		sqlite3.SQLITE_IOCAP_SAFE_APPEND | sqlite3.SQLITE_IOCAP_SEQUENTIAL
	r, m := below(file)
	return function[onFile](m.FxDeviceCharacteristics)(tls, r) & kept
}

func mapShared(tls *libc.TLS, file uintptr, region, size, extend int32, result uintptr) int32 {
	r, m := below(file)
	return function[shmMap](m.FxShmMap)(tls, r, region, size, extend, result)
}

func lockShared(tls *libc.TLS, file uintptr, offset, n, flags int32) int32 {
	r, m := below(file)
	return function[shmLock](m.FxShmLock)(tls, r, offset, n, flags)
}

func barrier(tls *libc.TLS, file uintptr) {
	r, m := below(file)
	function[shmBarrier](m.FxShmBarrier)(tls, r)
}

func unmapShared(tls *libc.TLS, file uintptr, remove int32) int32 {
	r, m := below(file)
	return function[withNumber](m.FxShmUnmap)(tls, r, remove)
}
