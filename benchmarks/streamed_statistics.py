import time,resource,sys,collegium as cg
from collegium.accounting import *
sc=cg.Schema({"age":{"kind":"whole","bounds":[0,120]},"stay":{"kind":"number","bounds":[0,60],"step":.5},"ward":{"kind":"category","categories":["ward %d"%i for i in range(20)]}})
t=time.time(); ask=cg.Statistics("/tmp/big.parquet",cg.Policy({"high":1.,"average":2.,"low":3.}),privacy="level",schema=sc); print("open %.1f s"%(time.time()-t), ask)
for f in (lambda: ask.groupby("ward").count(), lambda: ask.groupby("ward").mean("stay"), lambda: ask.groupby("ward").median("stay"), lambda: ask.mean("age")):
    t=time.time(); a=f(); print(str(a).splitlines()[:2], "%.1f s"%(time.time()-t), "%.2f GB"%(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss/1e6))
