"""The code of the thread pool: LLVM text with places for what differs between machines. See pool.py."""

IN_PLACE = """\
define linkonce_odr hidden void @tilewright_parallel(ptr %body, ptr %context, i64 %n, i64 %threads) nounwind {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %run, label %end
run:
  call void %body(i64 0, i64 %n, i64 0, ptr %context)
  br label %end
end:
  ret void
}
define linkonce_odr hidden void @tilewright_set_num_threads(i64 %n) nounwind {
  ret void
}
define linkonce_odr hidden void @tilewright_set_spin(i64 %microseconds) nounwind {
  ret void
}
define linkonce_odr hidden i64 @tilewright_start_threads(i64 %threads) nounwind {
  ret i64 1
}
"""

# What is written together lies in cache lines of its own, two at a time since processors fetch them in pairs:
# the launch (its word, body, context, n, pieces, threads); the pieces done, and whether somebody sleeps until
# they are; the lock with what only its holder uses (workers, whether no more could be started); the number of
# sleepers and the bell that they sleep on; the settings (threads at most or 0, nanoseconds of spinning,
# whether they were read).
POOL = """\
$pause_declared
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sigdelset(ptr, i32)
declare i32 @getpid()
declare i64 @syscall(i64, ...)
declare i32 @clock_gettime(i32, ptr)
declare ptr @getenv(ptr)
declare i64 @atoll(ptr)
declare i64 @llvm.smin.i64(i64, i64)

@tilewright.pool.launch = linkonce_odr hidden global [16 x i64] zeroinitializer, align 128
@tilewright.pool.done = linkonce_odr hidden global [16 x i64] zeroinitializer, align 128
@tilewright.pool.lock = linkonce_odr hidden global [16 x i64] zeroinitializer, align 128
@tilewright.pool.bell = linkonce_odr hidden global [16 x i64] zeroinitializer, align 128
@tilewright.pool.settings = linkonce_odr hidden global [16 x i64] zeroinitializer, align 128
@tilewright.pool.threads_variable = linkonce_odr hidden constant [23 x i8] c"TILEWRIGHT_NUM_THREADS\\00"
@tilewright.pool.spin_variable = linkonce_odr hidden constant [19 x i8] c"TILEWRIGHT_SPIN_US\\00"

define linkonce_odr hidden i64 @tilewright.pool.now() nounwind {
  %time = alloca [2 x i64], align 8
  %r = call i32 @clock_gettime(i32 1, ptr %time)
  %s = load i64, ptr %time, align 8
  %p = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %p, align 8
  %m = mul i64 %s, 1000000000
  %t = add i64 %m, %ns
  ret i64 %t
}

define linkonce_odr hidden void @tilewright.pool.sleep(ptr %word, i64 %seen) nounwind {
  %r = call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i64 128, i64 %seen, ptr null, ptr null, i64 0)
  ret void
}

define linkonce_odr hidden void @tilewright.pool.wake(ptr %word) nounwind {
  %r = call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i64 129, i64 2147483647, ptr null, ptr null, i64 0)
  ret void
}

; Takes a piece of the launch that is on and runs it: false where there was none for this thread.
define linkonce_odr hidden i1 @tilewright.pool.take(i64 %thread) nounwind {
entry:
  %p_body = getelementptr i64, ptr @tilewright.pool.launch, i64 1
  %p_context = getelementptr i64, ptr @tilewright.pool.launch, i64 2
  %p_n = getelementptr i64, ptr @tilewright.pool.launch, i64 3
  %p_pieces = getelementptr i64, ptr @tilewright.pool.launch, i64 4
  %p_threads = getelementptr i64, ptr @tilewright.pool.launch, i64 5
  %p_waiting = getelementptr i64, ptr @tilewright.pool.done, i64 1
  br label %look
look:
  %word = load atomic i64, ptr @tilewright.pool.launch acquire, align 8
  %back = and i64 %word, 65535
  %shifted = lshr i64 %word, 16
  %front = and i64 %shifted, 65535
  %none = icmp eq i64 %front, %back
  br i1 %none, label %nothing, label %read
read:
  %body = load atomic ptr, ptr %p_body monotonic, align 8
  %context = load atomic ptr, ptr %p_context monotonic, align 8
  %n = load atomic i64, ptr %p_n monotonic, align 8
  %pieces = load atomic i64, ptr %p_pieces monotonic, align 8
  %threads = load atomic i64, ptr %p_threads monotonic, align 8
  %wanted = icmp ult i64 %thread, %threads
  br i1 %wanted, label %claim, label %nothing
claim:
  %is_caller = icmp eq i64 %thread, 0
  %last = sub i64 %back, 1
  %piece = select i1 %is_caller, i64 %front, i64 %last
  %step = select i1 %is_caller, i64 65536, i64 -1
  %taken_word = add i64 %word, %step
  %pair = cmpxchg ptr @tilewright.pool.launch, i64 %word, i64 %taken_word acq_rel monotonic, align 8
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %run, label %look
run:
  %size = udiv i64 %n, %pieces
  %more = urem i64 %n, %pieces
  %start = mul i64 %piece, %size
  %more_before = mul i64 %piece, %more
  %longer_before = udiv i64 %more_before, %pieces
  %begin = add i64 %start, %longer_before
  %more_after = add i64 %more_before, %more
  %longer_after = udiv i64 %more_after, %pieces
  %after = add i64 %start, %size
  %end = add i64 %after, %longer_after
  call void %body(i64 %begin, i64 %end, i64 %thread, ptr %context)
  %d = atomicrmw add ptr @tilewright.pool.done, i64 1 seq_cst, align 8
  %waiting = load atomic i64, ptr %p_waiting seq_cst, align 8
  %is_waiting = icmp ne i64 %waiting, 0
  br i1 %is_waiting, label %tell, label %taken
tell:
  call void @tilewright.pool.wake(ptr @tilewright.pool.done)
  br label %taken
taken:
  ret i1 true
nothing:
  ret i1 false
}

; Whether the launch that is on has a piece for this thread.
define linkonce_odr hidden i1 @tilewright.pool.has_work(i64 %thread) nounwind {
  %p_threads = getelementptr i64, ptr @tilewright.pool.launch, i64 5
  %word = load atomic i64, ptr @tilewright.pool.launch seq_cst, align 8
  %threads = load atomic i64, ptr %p_threads monotonic, align 8
  %back = and i64 %word, 65535
  %shifted = lshr i64 %word, 16
  %front = and i64 %shifted, 65535
  %some = icmp ne i64 %front, %back
  %wanted = icmp ult i64 %thread, %threads
  %both = and i1 %some, %wanted
  ret i1 %both
}

define linkonce_odr hidden ptr @tilewright.pool.worker(ptr %argument) nounwind {
entry:
  %thread = ptrtoint ptr %argument to i64
  %p_spin = getelementptr i64, ptr @tilewright.pool.settings, i64 1
  %p_bell = getelementptr i64, ptr @tilewright.pool.bell, i64 8
  br label %work
work:
  %took = call i1 @tilewright.pool.take(i64 %thread)
  br i1 %took, label %work, label %begin
begin:
  %since = call i64 @tilewright.pool.now()
  br label %spin
spin:
  %count = phi i64 [ 0, %begin ], [ %next, %again ], [ %next, %clock ]
  %work_there = call i1 @tilewright.pool.has_work(i64 %thread)
  br i1 %work_there, label %work, label %again
again:
  $pause
  %next = add i64 %count, 1
  %rest = and i64 %next, 63
  %look_up = icmp eq i64 %rest, 0
  br i1 %look_up, label %clock, label %spin
clock:
  %time = call i64 @tilewright.pool.now()
  %spun = sub i64 %time, %since
  %most = load atomic i64, ptr %p_spin monotonic, align 8
  %enough = icmp sge i64 %spun, %most
  br i1 %enough, label %tired, label %spin
tired:
  %s = atomicrmw add ptr @tilewright.pool.bell, i64 1 seq_cst, align 8
  %heard = load atomic i32, ptr %p_bell seq_cst, align 4
  %late = call i1 @tilewright.pool.has_work(i64 %thread)
  br i1 %late, label %up, label %sleep
sleep:
  %wide = zext i32 %heard to i64
  call void @tilewright.pool.sleep(ptr %p_bell, i64 %wide)
  br label %up
up:
  %t = atomicrmw sub ptr @tilewright.pool.bell, i64 1 seq_cst, align 8
  br label %work
}

; Starts workers until there are as many as wanted; how many there are. Only for the holder of the lock.
; They take no signals but those of their own faults: a signal is for threads that know what to do with it.
define linkonce_odr hidden i64 @tilewright.pool.start(i64 %wanted) nounwind {
entry:
  %p_workers = getelementptr i64, ptr @tilewright.pool.lock, i64 1
  %p_refused = getelementptr i64, ptr @tilewright.pool.lock, i64 2
  %there = load i64, ptr %p_workers, align 8
  %refused = load i64, ptr %p_refused, align 8
  %enough = icmp uge i64 %there, %wanted
  %hopeless = icmp ne i64 %refused, 0
  %stop = or i1 %enough, %hopeless
  br i1 %stop, label %end, label %prepare
prepare:
  %attributes = alloca [16 x i64], align 16
  %all = alloca [16 x i64], align 16
  %old = alloca [16 x i64], align 16
  %handle = alloca i64, align 8
  %r0 = call i32 @pthread_attr_init(ptr %attributes)
  %r1 = call i32 @pthread_attr_setdetachstate(ptr %attributes, i32 1)
  %r2 = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 1048576)
  %r3 = call i32 @sigfillset(ptr %all)
  %r4 = call i32 @sigdelset(ptr %all, i32 4)
  %r5 = call i32 @sigdelset(ptr %all, i32 7)
  %r6 = call i32 @sigdelset(ptr %all, i32 8)
  %r7 = call i32 @sigdelset(ptr %all, i32 11)
  %r8 = call i32 @pthread_sigmask(i32 2, ptr %all, ptr %old)
  br label %one
one:
  %n = phi i64 [ %there, %prepare ], [ %id, %started ]
  %id = add i64 %n, 1
  %argument = inttoptr i64 %id to ptr
  %failed = call i32 @pthread_create(ptr %handle, ptr %attributes, ptr @tilewright.pool.worker, ptr %argument)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %started, label %give_up
started:
  %more = icmp ult i64 %id, %wanted
  br i1 %more, label %one, label %finish
give_up:
  store i64 1, ptr %p_refused, align 8
  br label %finish
finish:
  %now = phi i64 [ %id, %started ], [ %n, %give_up ]
  store i64 %now, ptr %p_workers, align 8
  %r9 = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  %r10 = call i32 @pthread_attr_destroy(ptr %attributes)
  ret i64 %now
end:
  ret i64 %there
}

define linkonce_odr hidden void @tilewright.pool.configure() nounwind {
entry:
  %p_spin = getelementptr i64, ptr @tilewright.pool.settings, i64 1
  %p_read = getelementptr i64, ptr @tilewright.pool.settings, i64 2
  %seen = load atomic i64, ptr %p_read acquire, align 8
  %is_read = icmp ne i64 %seen, 0
  br i1 %is_read, label %end, label %spin_first
spin_first:
  %spin_text = call ptr @getenv(ptr @tilewright.pool.spin_variable)
  %no_spin = icmp eq ptr %spin_text, null
  br i1 %no_spin, label %threads_next, label %spin_given
spin_given:
  %us = call i64 @atoll(ptr %spin_text)
  %given = mul i64 %us, 1000
  br label %threads_next
threads_next:
  %spin = phi i64 [ $spin, %spin_first ], [ %given, %spin_given ]
  %threads_text = call ptr @getenv(ptr @tilewright.pool.threads_variable)
  %no_threads = icmp eq ptr %threads_text, null
  br i1 %no_threads, label %store, label %threads_given
threads_given:
  %most = call i64 @atoll(ptr %threads_text)
  br label %store
store:
  %threads = phi i64 [ 0, %threads_next ], [ %most, %threads_given ]
  store atomic i64 %threads, ptr @tilewright.pool.settings monotonic, align 8
  store atomic i64 %spin, ptr %p_spin monotonic, align 8
  store atomic i64 1, ptr %p_read release, align 8
  br label %end
end:
  ret void
}

define linkonce_odr hidden void @tilewright_set_num_threads(i64 %n) nounwind {
  call void @tilewright.pool.configure()
  store atomic i64 %n, ptr @tilewright.pool.settings monotonic, align 8
  ret void
}

define linkonce_odr hidden void @tilewright_set_spin(i64 %microseconds) nounwind {
  call void @tilewright.pool.configure()
  %p_spin = getelementptr i64, ptr @tilewright.pool.settings, i64 1
  %ns = mul i64 %microseconds, 1000
  store atomic i64 %ns, ptr %p_spin monotonic, align 8
  ret void
}

; Takes the pool for a launch; false where it is in use. What a fork brought along is forgotten.
define linkonce_odr hidden i1 @tilewright.pool.acquire(i64 %tag) nounwind {
entry:
  %p_workers = getelementptr i64, ptr @tilewright.pool.lock, i64 1
  %p_refused = getelementptr i64, ptr @tilewright.pool.lock, i64 2
  %p_waiting = getelementptr i64, ptr @tilewright.pool.done, i64 1
  %held = or i64 %tag, 1
  %seen = load atomic i64, ptr @tilewright.pool.lock acquire, align 8
  %busy = icmp eq i64 %seen, %held
  br i1 %busy, label %no, label %try
try:
  %pair = cmpxchg ptr @tilewright.pool.lock, i64 %seen, i64 %held acq_rel monotonic, align 8
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %taken, label %no
taken:
  %ours = icmp eq i64 %seen, %tag
  br i1 %ours, label %yes, label %afresh
afresh:
  store i64 0, ptr %p_workers, align 8
  store i64 0, ptr %p_refused, align 8
  store atomic i64 0, ptr %p_waiting monotonic, align 8
  store atomic i64 0, ptr @tilewright.pool.bell monotonic, align 8
  store atomic i64 0, ptr @tilewright.pool.launch seq_cst, align 8
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

; The number of this process, as the lock holds it while nobody has the pool.
define linkonce_odr hidden i64 @tilewright.pool.tag() nounwind {
  %process = call i32 @getpid()
  %wide = zext i32 %process to i64
  %tag = shl i64 %wide, 1
  ret i64 %tag
}

define linkonce_odr hidden i64 @tilewright_start_threads(i64 %threads) nounwind {
entry:
  call void @tilewright.pool.configure()
  %tag = call i64 @tilewright.pool.tag()
  %mine = call i1 @tilewright.pool.acquire(i64 %tag)
  br i1 %mine, label %start, label %busy
start:
  %most = call i64 @llvm.smin.i64(i64 %threads, i64 $most)
  %helpers = sub i64 %most, 1
  %workers = call i64 @tilewright.pool.start(i64 %helpers)
  store atomic i64 %tag, ptr @tilewright.pool.lock release, align 8
  %all = add i64 %workers, 1
  ret i64 %all
busy:
  ret i64 0
}

define linkonce_odr hidden void @tilewright_parallel(ptr %body, ptr %context, i64 %n, i64 %threads) nounwind {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %count, label %end
count:
  call void @tilewright.pool.configure()
  %setting = load atomic i64, ptr @tilewright.pool.settings monotonic, align 8
  %is_set = icmp sgt i64 %setting, 0
  %limit = select i1 %is_set, i64 %setting, i64 $most
  %a = call i64 @llvm.smin.i64(i64 %threads, i64 %limit)
  %b = call i64 @llvm.smin.i64(i64 %a, i64 %n)
  %most = call i64 @llvm.smin.i64(i64 %b, i64 $most)
  %several = icmp sgt i64 %most, 1
  br i1 %several, label %acquire, label %alone
alone:
  call void %body(i64 0, i64 %n, i64 0, ptr %context)
  br label %end
acquire:
  %tag = call i64 @tilewright.pool.tag()
  %mine = call i1 @tilewright.pool.acquire(i64 %tag)
  br i1 %mine, label %publish, label %alone
publish:
  %helpers = sub i64 %most, 1
  %w = call i64 @tilewright.pool.start(i64 %helpers)
  %p_body = getelementptr i64, ptr @tilewright.pool.launch, i64 1
  %p_context = getelementptr i64, ptr @tilewright.pool.launch, i64 2
  %p_n = getelementptr i64, ptr @tilewright.pool.launch, i64 3
  %p_pieces = getelementptr i64, ptr @tilewright.pool.launch, i64 4
  %p_threads = getelementptr i64, ptr @tilewright.pool.launch, i64 5
  %p_waiting = getelementptr i64, ptr @tilewright.pool.done, i64 1
  %p_bell = getelementptr i64, ptr @tilewright.pool.bell, i64 8
  %wished = mul i64 %most, $pieces
  %pieces = call i64 @llvm.smin.i64(i64 %wished, i64 %n)
  store atomic ptr %body, ptr %p_body monotonic, align 8
  store atomic ptr %context, ptr %p_context monotonic, align 8
  store atomic i64 %n, ptr %p_n monotonic, align 8
  store atomic i64 %pieces, ptr %p_pieces monotonic, align 8
  store atomic i64 %most, ptr %p_threads monotonic, align 8
  store atomic i64 0, ptr @tilewright.pool.done monotonic, align 8
  %old = load atomic i64, ptr @tilewright.pool.launch monotonic, align 8
  %number = and i64 %old, -4294967296
  %next = add i64 %number, 4294967296
  %word = or i64 %next, %pieces
  store atomic i64 %word, ptr @tilewright.pool.launch seq_cst, align 8
  %sleepers = load atomic i64, ptr @tilewright.pool.bell seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  br i1 %asleep, label %ring, label %work
ring:
  %r = atomicrmw add ptr %p_bell, i32 1 seq_cst, align 4
  call void @tilewright.pool.wake(ptr %p_bell)
  br label %work
work:
  %took = call i1 @tilewright.pool.take(i64 0)
  br i1 %took, label %work, label %wait
wait:
  %turns = phi i64 [ 0, %work ], [ %turn, %wait_more ]
  %done = load atomic i64, ptr @tilewright.pool.done acquire, align 8
  %all = icmp eq i64 %done, %pieces
  br i1 %all, label %release, label %wait_more
wait_more:
  $pause
  %turn = add i64 %turns, 1
  %long = icmp ugt i64 %turn, $turns
  br i1 %long, label %rest, label %wait
rest:
  store atomic i64 1, ptr %p_waiting seq_cst, align 8
  %so_far = load atomic i64, ptr @tilewright.pool.done seq_cst, align 8
  %over = icmp eq i64 %so_far, %pieces
  br i1 %over, label %rested, label %rest_more
rest_more:
  call void @tilewright.pool.sleep(ptr @tilewright.pool.done, i64 %so_far)
  br label %rest
rested:
  store atomic i64 0, ptr %p_waiting monotonic, align 8
  br label %release
release:
  store atomic i64 %tag, ptr @tilewright.pool.lock release, align 8
  br label %end
end:
  ret void
}
"""
