"""new and delete of C++."""
import ctypes
import os

from truth import reserve, summit

cpp = ctypes.CDLL(os.environ["TRUTH_CPP_LIBRARY"])
for name in ("new", "new_array", "new_nothrow", "new_aligned"):
    f = getattr(cpp, "cpp_" + name)
    f.restype, f.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
for name in ("delete", "delete_array", "delete_aligned"):
    f = getattr(cpp, "cpp_" + name)
    f.restype, f.argtypes = None, [ctypes.c_void_p]


def main():
    a = cpp.cpp_new(123)                        #: malloc=[123]
    b = cpp.cpp_new_array(456)                  #: malloc=[456], live=[456]
    c = cpp.cpp_new_array(457)                  #: malloc=[457]
    d = cpp.cpp_new_nothrow(78)                 #: malloc=[78], live=[78]
    e = cpp.cpp_new_aligned(640)                #: ANY=[640], live=[640]
    f = cpp.cpp_new_aligned(128)                #: ANY=[128]
    cpp.cpp_delete(a)                           #:
    cpp.cpp_delete_array(c)                     #:
    cpp.cpp_delete_aligned(f)                   #:
    failed = cpp.cpp_new_nothrow(2**62)
    assert failed is None and cpp.cpp_new_too_much() == 0
    assert b and d and e


kept = reserve()
main()
summit()
os._exit(0)
