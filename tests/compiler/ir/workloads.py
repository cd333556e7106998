"""The workloads whose keys are fixed for good: a stored schedule is found by its key."""

GOLDEN_KEYS = (
    (
        {"op": "matmul", "m": 1024, "n": 1024, "k": 1024},
        "a163e171011e4e17b1616ddaf6d31df844db1ea88f8499690e277d84fb835a6f",
    ),
    (
        {"op": "matmul", "m": 512, "n": 512, "k": 512},
        "1ee26fae67a99a28332e041edfd2a89ad03b5c2a69fec84959c542d16522979a",
    ),
    (
        {"op": "matmul", "m": 16, "n": 1024, "k": 1024},
        "39852a8de9cbe486c986c478011f0b119888e29a7ccc7d8a3456782c409e5354",
    ),
    (
        {"op": "dense", "m": 128, "n": 3072, "k": 768, "bias": True, "activation": "relu"},
        "bb23d6f3d42ebea48b0c29dee2ba09c2276435bbb44bd7c2fa9d385d35c03a79",
    ),
    (
        {"op": "dense", "m": 128, "n": 3072, "k": 768, "weights": "nk", "bias": True, "activation": "gelu"},
        "54188ee70e311afdfaac6b886c4bd22b81f12d91e99330111fe70c6790ebff60",
    ),
    (
        {
            "op": "conv2d",
            "ci": 64,
            "h": 56,
            "w": 56,
            "co": 64,
            "kh": 3,
            "kw": 3,
            "pad": 1,
            "layout": "NHWC",
            "bias": True,
            "activation": "relu",
        },
        "077582becfa171aaaaa1ba2a208477302f7dcab37a6fab85065669e8e7e52a43",
    ),
    (
        {
            "op": "conv2d",
            "ci": 64,
            "h": 56,
            "w": 56,
            "co": 64,
            "kh": 3,
            "kw": 3,
            "pad": 1,
            "bias": True,
            "activation": "relu",
        },
        "87fb62e3a596427ec490fdaeb7da9562755aa46e605698c1b0756dba220d7114",
    ),
    (
        {"op": "conv2d", "ci": 256, "h": 14, "w": 14, "co": 256, "kh": 3, "kw": 3, "pad": 1},
        "4702208e471b4b472a33babbef2f834a602b87617ba8d2330d7ddde5c65bc653",
    ),
    (
        {
            "op": "conv2d",
            "ci": 8,
            "h": 13,
            "w": 13,
            "co": 12,
            "kh": 3,
            "kw": 5,
            "pad": [1, 2],
            "stride": 2,
            "groups": 4,
            "dtype": "float16",
        },
        "a0d64fce5481594480af90ba500e5cca5bf8b2bdf514b0d449dd05465496e621",
    ),
    (
        {"op": "depthwise_conv2d", "c": 128, "h": 28, "w": 28, "kh": 3, "kw": 3, "pad": 1, "layout": "NHWC"},
        "f4e3f9f3852a5238f32a44d5fc55ba88d53a778a8bd3f752f14c1245f70ee0f3",
    ),
    (
        {"op": "depthwise_conv2d", "c": 128, "h": 28, "w": 28, "kh": 3, "kw": 3, "pad": 1},
        "f29a575058350522ea9958ae2dc7906dff2a5c1afa3a0b10af619ac6eb030a1b",
    ),
    (
        {"op": "softmax", "m": 512, "n": 1024},
        "3d03b130400fc7c35673714f8e5526c269f9a88d0ff2a2b407acefeb1e23dd88",
    ),
    (
        {"op": "layer_norm", "m": 512, "n": 768},
        "1325bf1e76bba0f6494f77ceac9404eb620a93cb41c3d564ae55d1f13d748a26",
    ),
    (
        {"op": "batch_matmul", "b": 12, "m": 128, "n": 128, "k": 64},
        "868137924e45c3d16bd50a92b728cf408ae4a956763dd002b636cefa23e2d657",
    ),
    (
        {"op": "transpose", "shape": [3, 5, 7], "dtype": "int8"},
        "351693e6d47af95e872a12c6bcab018e9eb05acb295f242a04993e00d847c4f3",
    ),
)
